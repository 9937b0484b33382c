"""Python's own tarfile is the oracle: it writes the archives, and says where their members lie."""

import io
import tarfile

import numpy as np
import pytest

from cdclust.data.tarfiles import BLOCK, Damaged, members

LONG = "a-folder-with-a-name/" * 9 + "picture.jpg"
FORMATS = {"gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT, "ustar": tarfile.USTAR_FORMAT}


def archive(path, files, form=tarfile.GNU_FORMAT):
    with tarfile.open(path, "w", format=form) as tar:
        folder = tarfile.TarInfo("sub")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for kind, name in ((tarfile.SYMTYPE, "soft"), (tarfile.LNKTYPE, "hard"), (tarfile.FIFOTYPE, "pipe")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, "/etc/passwd"
            tar.addfile(link)
        last = tarfile.TarInfo("last.txt")
        last.size = 3
        tar.addfile(last, io.BytesIO(b"end"))
    return path


def found(path):
    with path.open("rb") as file:
        return [(m.name, m.offset, m.size) for m in members(file)]


def oracle(path):
    with tarfile.open(path) as tar:
        return [(m.name, m.offset_data, m.size) for m in tar if m.isfile()]


@pytest.mark.parametrize("form", FORMATS)
def test_members_are_where_tarfile_finds_them(tmp_path, form):
    files = {
        "a.jpg": b"x",
        "sub/b.jpg": b"y" * 512,
        "Ω é.png": b"z" * 513,
        "empty.cls": b"",
        "deep/" * 30 + "c.jpg": b"1",
    }
    if form != "ustar":
        files[LONG] = b"long"
    path = archive(tmp_path / "a.tar", files, FORMATS[form])
    assert found(path) == oracle(path)
    assert len(found(path)) == len(files) + 1


def test_a_size_beyond_what_octal_holds_is_read_from_both_kinds_of_header(tmp_path):
    size = 9 * 2**30
    for form in ("gnu", "pax"):
        info = tarfile.TarInfo("big.jpg")
        info.size = size
        (tmp_path / form).write_bytes(info.tobuf(FORMATS[form]))
        with (tmp_path / form).open("rb") as file:
            member = next(members(file))
        assert (member.name, member.size) == ("big.jpg", size)


def test_a_sparse_files_further_headers_are_stepped_over(tmp_path):
    sparse = tarfile.TarInfo("sparse")
    sparse.type, sparse.size = tarfile.GNUTYPE_SPARSE, 600
    header = bytearray(sparse.tobuf(tarfile.GNU_FORMAT))
    header[482] = 1
    header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 256)
    after = tarfile.TarInfo("after.jpg").tobuf()
    (tmp_path / "s.tar").write_bytes(bytes(header) + bytes(BLOCK) + bytes(1024) + after + bytes(1024))
    assert [name for name, _, _ in found(tmp_path / "s.tar")] == ["after.jpg"]


def test_what_is_no_tar_file_says_so(tmp_path):
    for content in (b"", b"<html>", np.random.default_rng(0).bytes(4096)):
        (tmp_path / "x.tar").write_bytes(content)
        with pytest.raises(Damaged, match="not a tar file"):
            found(tmp_path / "x.tar")


def test_a_length_below_zero_is_refused_and_not_followed_back(tmp_path):
    """With it a reader that adds up lengths goes round for ever."""
    header = bytearray(tarfile.TarInfo("a.jpg").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 10 + b"\xfe\x00"
    header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 256)
    (tmp_path / "x.tar").write_bytes(bytes(header) * 3)
    with pytest.raises(Damaged):
        found(tmp_path / "x.tar")


def test_damaged_archives_end_without_a_crash_or_a_hang(tmp_path):
    """Bit flips and cuts, in each format: what is found lies in the file's order, and the end is reached."""
    chance = np.random.default_rng(0)
    cut = 0
    for form in FORMATS.values():
        whole = archive(tmp_path / "w.tar", {f"{i}.jpg": b"x" * 700 for i in range(4)}, form).read_bytes()
        for _ in range(150):
            damaged = bytearray(whole)
            for at in chance.integers(0, len(whole), 5):
                damaged[at] ^= 1 << int(chance.integers(8))
            (tmp_path / "d.tar").write_bytes(damaged[: int(chance.integers(1, len(whole)))])
            offsets = []
            try:
                with (tmp_path / "d.tar").open("rb") as file:
                    offsets = [m.offset for m in members(file)]
            except Damaged:
                cut += 1
            assert offsets == sorted(set(offsets))
    assert cut > 100
