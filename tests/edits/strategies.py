"""Token lists as captions have them: many repeats, so that alignments have ties to break, and any unicode at times."""

from hypothesis import strategies as st

small_vocabulary = st.sampled_from(["a", "man", "on", "the", "dog", "cat", "of"])
any_word = st.text(min_size=1, max_size=6)
token_lists = st.one_of(st.lists(small_vocabulary, max_size=14), st.lists(any_word, max_size=6))
