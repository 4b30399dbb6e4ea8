import torch

from capedit.models.mean_weights import mean_weights


def test_weights_are_averaged_by_the_share_and_the_rest_is_kept() -> None:
    frozen, numbers = torch.tensor([0.1, 0.7]), torch.tensor([3])
    one = {"learned": torch.tensor([1.0, 2.0]), "frozen": frozen, "numbers": numbers}
    other = {"learned": torch.tensor([3.0, 6.0]), "frozen": frozen.clone(), "numbers": numbers.clone()}
    mean = mean_weights(one, other, 0.75)
    torch.testing.assert_close(mean["learned"], torch.tensor([2.5, 5.0]))
    assert torch.equal(mean["frozen"], frozen)
    assert torch.equal(mean["numbers"], numbers)
    assert torch.equal(one["learned"], torch.tensor([1.0, 2.0]))
    assert torch.equal(mean_weights(one, other, 1.0)["learned"], other["learned"])
