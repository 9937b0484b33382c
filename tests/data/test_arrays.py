import numpy as np
import pytest
import torch

from cdclust.data import load_source
from cdclust.errors import UserError

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (6, 8, 9, 3), dtype=np.uint8)
GREY = COLOUR[..., 0]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (GREY, GREY[:, None]),
        (GREY[..., None], GREY[:, None]),
        (COLOUR, COLOUR.transpose(0, 3, 1, 2)),
        (COLOUR.transpose(0, 3, 1, 2), COLOUR.transpose(0, 3, 1, 2)),
        (GREY[:, None], GREY[:, None]),
        (torch.from_numpy(COLOUR), COLOUR.transpose(0, 3, 1, 2)),
    ],
    ids=["NHW", "NHW1", "NHW3", "N3HW", "N1HW", "tensor"],
)
def test_every_layout_becomes_channels_first(array, expected):
    images = load_source(array)
    assert images.images.dtype == torch.uint8
    np.testing.assert_array_equal(images.images.numpy(), expected)
    assert list(images.keys) == ["0", "1", "2", "3", "4", "5"]
    assert images.labels is None


@pytest.mark.parametrize(
    "array",
    [GREY.astype(np.float32), GREY / 255.0, GREY.astype(np.int64), GREY.astype(np.uint16) * 257],
    ids=["floats to 255", "floats to 1", "int64", "16-bit"],
)
def test_other_pixel_types_are_converted_and_said(array):
    images = load_source(array)
    np.testing.assert_array_equal(images.images.numpy()[:, 0], GREY)
    assert len(images.notes) == 1


def test_the_caller_keeps_its_own_array():
    mine = COLOUR.transpose(0, 3, 1, 2).copy()
    images = load_source(mine)
    mine[:] = 0
    assert images.images.any()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((5, 64)), "has the shape"),
        (np.zeros((32, 32, 3), np.uint8), "first axis of 1"),
        (np.zeros((5, 8, 8, 4), np.uint8), "alpha"),
        (np.zeros((0, 8, 8), np.uint8), "no images"),
        (np.zeros((5, 0, 8), np.uint8), "at least one pixel"),
        (np.zeros((5, 8, 8), np.complex64), "complex64"),
        (np.full((1, 2, 2), "a"), "has the type"),
        (np.full((5, 8, 8), -0.5), "-0.5"),
        (np.full((5, 8, 8), 300), "300"),
    ],
)
def test_a_wrong_array_is_refused_in_one_line(array, words):
    with pytest.raises(UserError, match=words) as error:
        load_source(array)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_pixel_that_is_no_number_is_refused_and_its_image_named(bad):
    array = np.zeros((5, 8, 8), np.float32)
    array[3, 2, 2] = bad
    with pytest.raises(UserError, match=r"image 3 .* NaN or infinite"):
        load_source(array)


def test_a_size_resizes_the_short_side_and_keeps_the_centre():
    wide = np.zeros((2, 8, 16, 3), np.uint8)
    wide[:, :, 4:12] = 200  # the middle square
    assert (load_source(wide, size=4).images == 200).all()
    assert load_source(wide, size=32).images.shape == (2, 3, 32, 32)


def test_shrinking_averages_instead_of_picking_pixels():
    board = (np.indices((64, 64)).sum(0) % 2 * 255).astype(np.uint8)[None]
    assert (load_source(board, size=8).images.float() - 127.5).abs().max() < 3


def test_labels_handed_over_may_be_words():
    images = load_source(COLOUR, labels=["b", "a", "b", "", "a", "b"])
    assert images.class_names == ["a", "b"]
    assert images.labels.tolist() == [1, 0, 1, -1, 0, 1]
    with pytest.raises(UserError, match="2 labels for 6 images"):
        load_source(COLOUR, labels=[0, 1])


def test_npz_with_splits(tmp_path):
    path = tmp_path / "set.npz"
    y = np.array([[4], [2], [4], [9]])
    np.savez(path, x_train=COLOUR[:4], y_train=y, x_test=COLOUR[4:], y_test=np.array([9, 4]))
    assert load_source(path).labels.tolist() == [4, 2, 4, 9]
    assert load_source(path).split == "train"
    assert load_source(str(path), split="test").labels.tolist() == [9, 4]
    for split in ("all", "train+test"):
        both = load_source(path, split=split)
        assert both.labels.tolist() == [4, 2, 4, 9, 9, 4]
        np.testing.assert_array_equal(both.images.numpy(), COLOUR.transpose(0, 3, 1, 2))
    with pytest.raises(UserError, match="no 'val'; it has train, test"):
        load_source(path, split="val")


def test_a_split_without_labels_gets_minus_one(tmp_path):
    np.savez(tmp_path / "a.npz", x_train=GREY[:2], x_test=GREY[2:4], y_test=[1, 0])
    assert load_source(tmp_path / "a.npz", split="all").labels.tolist() == [-1, -1, 1, 0]
    assert load_source(tmp_path / "a.npz").labels is None


@pytest.mark.parametrize("keys", [("x", "y"), ("images", "labels"), ("pictures", None)])
def test_npz_without_splits(tmp_path, keys):
    arrays = {keys[0]: GREY} | ({keys[1]: np.arange(6)} if keys[1] else {})
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    images = load_source(tmp_path / "a.npz")
    assert len(images) == 6
    assert images.split == "all"
    assert (images.labels is not None) == bool(keys[1])
    with pytest.raises(UserError, match="no splits"):
        load_source(tmp_path / "a.npz", split="test")


def test_npz_labels_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", x=GREY, y=np.zeros(6), coarse=np.arange(6), class_names=list("abcdef"))
    images = load_source(tmp_path / "a.npz", labels="coarse")
    assert images.labels.tolist() == list(range(6))
    assert images.class_names == list("abcdef")
    with pytest.raises(UserError, match="no array 'fine'"):
        load_source(tmp_path / "a.npz", labels="fine")


def test_npy(tmp_path):
    np.save(tmp_path / "a.npy", COLOUR)
    np.testing.assert_array_equal(load_source(tmp_path / "a.npy").images.numpy(), COLOUR.transpose(0, 3, 1, 2))


def test_pickled_arrays_are_never_opened(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "b.npz", x=np.array([{"a": 1}], dtype=object))
    for name in ("a.npy", "b.npz"):
        with pytest.raises(UserError, match="pickled objects"):
            load_source(tmp_path / name)


@pytest.mark.parametrize("damage", ["empty", "text", "truncated"])
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_a_damaged_array_file_is_one_line(tmp_path, damage, ending):
    path = tmp_path / f"a.{ending}"
    (np.save if ending == "npy" else np.savez)(path, GREY)
    whole = path.read_bytes()
    path.write_bytes({"empty": b"", "text": b"hello", "truncated": whole[: len(whole) // 2]}[damage])
    with pytest.raises(UserError, match="cannot be read") as error:
        load_source(path)
    assert "\n" not in str(error.value)


def test_what_does_not_fit_in_memory_is_refused_before_it_is_built():
    with pytest.raises(UserError, match="GiB"):
        load_source(GREY, size=4096, max_bytes=10**6)


class Items:
    classes = ("cat", "dog")

    def __init__(self, broken=()):
        self.broken = broken

    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i in self.broken:
            raise OSError("image file is truncated")
        return torch.from_numpy(COLOUR[i]).permute(2, 0, 1) / 255, self.label(i)

    def label(self, i):
        return i % 2


class WordItems(Items):
    def label(self, i):
        return "dog" if i % 2 else "cat"


def test_a_torch_data_set_gives_images_and_labels():
    images = load_source(Items())
    np.testing.assert_array_equal(images.images.numpy(), COLOUR.transpose(0, 3, 1, 2))
    assert images.labels.tolist() == [0, 1] * 3
    assert list(images.class_names) == ["cat", "dog"]


def test_an_item_that_cannot_be_read_keeps_its_row():
    images = load_source(Items(broken=[1, 4]))
    assert [s == "ok" for s in images.status] == [True, False, True, True, False, True]
    assert images.rows.tolist() == [0, 2, 3, 5]
    assert images.spread(np.array([7, 8, 9, 10])).tolist() == [7, -1, 8, 9, -1, 10]
    with pytest.raises(UserError, match="4 of the 6"):
        load_source(Items(broken=[0, 1, 2, 3]))


def test_images_alone_of_any_kind_are_items():
    from PIL import Image

    images = load_source([Image.fromarray(COLOUR[0]), COLOUR[1], torch.from_numpy(COLOUR[2])])
    np.testing.assert_array_equal(images.images.numpy(), COLOUR[:3].transpose(0, 3, 1, 2))
    assert images.labels is None


def test_normalised_tensors_are_refused_in_words():
    with pytest.raises(UserError, match="before any normalisation"):
        load_source([torch.randn(3, 8, 8) * 2 for _ in range(4)])
    with pytest.raises(UserError, match="no length"):
        load_source(iter([COLOUR]))


def test_an_unreadable_item_with_words_as_labels_has_no_label():
    images = load_source(WordItems(broken=[2]))
    assert images.class_names == ["cat", "dog"]
    assert images.labels.tolist() == [0, 1, -1, 1, 0, 1]
    assert load_source(Items(broken=[2])).labels.tolist() == [0, 1, -1, 1, 0, 1]


def test_resizing_agrees_with_pillow():
    from PIL import Image

    for size in (5, 8, 24):
        images = load_source(COLOUR, size=size).images.int().numpy()
        for got, pixels in zip(images, COLOUR, strict=True):
            whole = Image.fromarray(pixels[:, :8])  # 8 x 9: the centre square starts at the left
            expected = np.asarray(whole.resize((size, size), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
            assert np.abs(got - expected).max() <= 1


def test_half_precision_tensors_are_read():
    for kind in (torch.bfloat16, torch.float16):
        images = load_source((torch.from_numpy(GREY // 128 * 255) / 255).to(kind))
        np.testing.assert_array_equal(images.images[:, 0].numpy(), GREY // 128 * 255)


@pytest.mark.parametrize(
    ("values", "labels", "names"),
    [
        ([3, -1, 0], [3, -1, 0], None),
        ([3.0, np.nan, 0.0], [3, -1, 0], None),
        (["3", "", "0"], [3, -1, 0], None),
        (["--5", "-", "7"], [1, 0, 2], ["-", "--5", "7"]),
        ([None, "b", "a"], [-1, 1, 0], ["a", "b"]),
        ([-7, 2, -7], [0, 1, 0], ["-7", "2"]),
        ([0.5, 1.5, 0.5], [0, 1, 0], ["0.5", "1.5"]),
        ([True, False, True], [1, 0, 1], None),
        ([10**30, 5, 10**30], [0, 1, 0], [str(10**30), "5"]),
    ],
)
def test_labels_of_any_type_become_whole_numbers(values, labels, names):
    images = load_source(COLOUR[:3], labels=values)
    assert images.labels.tolist() == labels
    assert images.class_names == names
