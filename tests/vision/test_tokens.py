import numpy as np
import pytest

from capedit.vision.tokens import VisualTokens, grid_corners


def test_the_whole_image_comes_first_and_is_the_mean() -> None:
    features = np.array([[1.0, 5.0], [3.0, 7.0]], np.float32)
    corners = np.array([[0, 0, 0.5, 0.5], [0.25, 0.5, 1, 1]], np.float32)
    tokens = VisualTokens.from_regions(features, corners)
    assert tokens.features.tolist() == [[2, 6], [1, 5], [3, 7]]
    assert tokens.boxes.tolist() == [[0, 0, 1, 1, 1], [0, 0, 0.5, 0.5, 0.25], [0.25, 0.5, 1, 1, 0.375]]
    assert (len(tokens), tokens.dim) == (3, 2)


def test_cells_run_row_by_row_and_cover_the_image() -> None:
    corners = grid_corners(2, 4)
    assert corners[0].tolist() == [0, 0, 0.25, 0.5]
    assert corners[1].tolist() == [0.25, 0, 0.5, 0.5]
    assert corners[7].tolist() == [0.75, 0.5, 1, 1]
    assert ((corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("features", "boxes", "reason"),
    [
        (np.zeros((2, 3)), np.zeros((2, 5), np.float32), "float64"),
        (np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32), "boxes"),
        (np.zeros((2, 3), np.float32), np.zeros((2, 5), np.float32), "whole image"),
        (np.zeros((0, 3), np.float32), np.zeros((0, 5), np.float32), "whole image"),
    ],
)
def test_wrong_shapes_are_refused(features: np.ndarray, boxes: np.ndarray, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        VisualTokens(features, boxes)
