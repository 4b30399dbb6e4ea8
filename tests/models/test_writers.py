import pytest
import torch
from torch import Tensor

from capedit.models.attention_lstm import AdditiveAttention, Lstm, RefCapEncoder, WriterConfig
from capedit.models.etn import CopyLstm, EditNet, Etn, select
from capedit.models.mn import DeepAveraging
from capedit.models.system import as_text
from capedit.models.updn import UpDn
from capedit.models.vilbert import VisionInput
from capedit.models.vocabulary import END, MASK, PAD, SPECIALS, START, UNKNOWN, Vocabulary
from tests.editing.tiny import DIM
from tests.training.made import made_pairs, made_system

WORDS = Vocabulary(["a", "dog", "cat"])


def test_attention_is_a_share_of_what_is_there() -> None:
    torch.manual_seed(0)
    attention = AdditiveAttention(4, 3, 5)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    looked = attention.project(torch.randn(2, 3, 3), mask)
    weights = attention.weights(torch.randn(2, 4), looked)
    torch.testing.assert_close(weights.sum(1), torch.ones(2))
    assert weights[1].tolist() == [1, 0, 0]
    torch.testing.assert_close(attention(torch.randn(2, 4), looked)[1], looked.values[1, 0])


def test_copy_attention_sums_to_one_and_takes_one_word() -> None:
    weights = torch.tensor([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]], requires_grad=True)
    chosen = select(weights)
    torch.testing.assert_close(chosen.sum(1), torch.ones(2))
    assert chosen.argmax(1).tolist() == [1, 0]
    (chosen * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert weights.grad is not None
    assert weights.grad.tolist() == [[0, 2, 0], [1, 0, 0]]  # only the word that was taken learns from it


def test_attention_of_the_editor_sums_to_one_over_the_caption() -> None:
    torch.manual_seed(0)
    net = EditNet(WriterConfig(feature_width=4, width=6, word_width=5, attention_width=3), len(WORDS)).eval()
    caption = net.reader(as_text(torch.tensor([[START, 5, 6, END], [START, 7, END, 0]])))
    weights = net.reader.attend.weights(torch.randn(2, 6), caption.words)
    torch.testing.assert_close(weights.sum(1), torch.ones(2))
    assert weights[1, 3] == 0


@pytest.mark.parametrize(("gate", "memory"), [(1e4, "given"), (-1e4, "own")])
def test_the_copy_gate_chooses_between_memories(gate: float, memory: str) -> None:
    torch.manual_seed(0)
    cell, given = CopyLstm(3, 4), torch.randn(2, 4)
    with torch.no_grad():
        cell.copy.weight.zero_()
        cell.copy.bias.fill_(gate)
    inputs, state = torch.randn(2, 3), Lstm(torch.randn(2, 4), torch.randn(2, 4))
    made = cell(inputs, state, given)
    plain = torch.nn.LSTMCell(3, 4)  # an LSTM with the same gates, which come in another order
    enter, forget, leave, new = cell.gates.weight.chunk(4)
    biases = cell.gates.bias.chunk(4)
    with torch.no_grad():
        weights = torch.cat([enter, forget, new, leave])
        plain.weight_ih.copy_(weights[:, :3])
        plain.weight_hh.copy_(weights[:, 3:])
        plain.bias_ih.copy_(torch.cat([biases[0], biases[1], biases[3], biases[2]]))
        plain.bias_hh.zero_()
    hidden, cells = plain(inputs, (state.hidden, state.cell))
    torch.testing.assert_close(made.cell, given if memory == "given" else cells)
    if memory == "own":
        torch.testing.assert_close(made.hidden, hidden)


@torch.no_grad()
def test_etn_writes_by_the_mean_of_two_voices() -> None:
    system = made_system("etn", made_pairs(2)).eval()
    assert isinstance(system, Etn)
    vision = VisionInput(torch.randn(1, 3, DIM), torch.zeros(1, 3, 5))
    memory = system.remember(vision, as_text(torch.tensor([[START, 5, END]])))
    start = torch.tensor([START])
    outputs, _ = system.advance(start, memory, system.start(memory))
    voices = [system.heads[voice](outputs[voice]).softmax(-1)[0] for voice in ("edit", "denoise")]
    assert not torch.allclose(*voices)
    likely = system.step(start, memory, system.start(memory))[0][0].exp()
    torch.testing.assert_close(likely[len(SPECIALS) :], ((voices[0] + voices[1]) / 2)[len(SPECIALS) :])
    assert likely[END] > 0
    assert likely[[PAD, UNKNOWN, START, MASK]].tolist() == [0, 0, 0, 0]


def test_the_encoder_equals_an_lstm_without_padding() -> None:
    torch.manual_seed(0)
    encoder = RefCapEncoder(3, 8)
    reference = torch.nn.LSTM(3, 4, bidirectional=True, batch_first=True)
    with torch.no_grad():
        for suffix, cell in (("", encoder.forwards), ("_reverse", encoder.backwards)):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(reference, f"{name}_l0{suffix}").copy_(getattr(cell, name))
    words = torch.randn(2, 5, 3)
    ids = torch.tensor([[2, 5, 6, 7, 3], [2, 5, 3, 0, 0]])
    read = encoder(words, as_text(ids))
    for row, length in enumerate((5, 3)):
        hidden, _ = reference(words[row : row + 1, :length])
        torch.testing.assert_close(read.hidden[row, :length], hidden[0])


def test_the_averaging_network_counts_words_only() -> None:
    torch.manual_seed(0)
    network = DeepAveraging(3, 4)
    table = torch.nn.Embedding(10, 3)

    def encode(*ids: int) -> Tensor:
        text = as_text(torch.tensor([ids]))
        encoded: Tensor = network(table(text.ids), text)
        return encoded

    torch.testing.assert_close(encode(START, 5, 6, END), encode(START, 6, 5, END, 0, 0))  # order is lost, padding too
    torch.testing.assert_close(encode(START, 5, 5, END), encode(START, 5, END))
    assert not torch.allclose(encode(START, 5, 6, END), encode(START, 5, END))


def test_updn_learns_to_say_the_next_word() -> None:
    system = UpDn(WriterConfig(feature_width=4, width=6, word_width=5, attention_width=3), WORDS)
    exercise = system.exercise([5, 6], [5, 7])
    assert exercise.shown == {"reference": [START, 5, 6, END], "before": [START, 5, 7]}
    assert exercise.wanted == {"words": [5, 7, END]}
