"""Damaged images, made from sound ones: `python tests/fuzzing.py N SEED` decodes N and prints what came of them.

A process of its own, so that a decoder that crashes or hangs is seen as one.
"""

import io
import json
import sys
import time
from collections import Counter

import numpy as np
from PIL import Image

KINDS: dict[str, list[dict]] = {
    "jpg": [{"quality": 80}, {"progressive": True}, {"subsampling": 0, "restart_marker_blocks": 1}],
    "png": [{}, {"mode": "P"}, {"mode": "I;16"}, {"mode": "RGBA"}],
    "webp": [{}, {"lossless": True}, {"mode": "RGBA"}],
    "gif": [{"mode": "P"}, {"mode": "P", "frames": 3}],
    "bmp": [{}, {"mode": "P"}],
    "tiff": [
        {},
        {"compression": "tiff_lzw"},
        {"compression": "tiff_deflate"},
        {"compression": "jpeg"},
        {"mode": "I;16"},
    ],
}


def sound(ending: str, settings: dict, chance: np.random.Generator) -> bytes:
    """A small picture, half smooth and half noise."""
    settings = dict(settings)
    mode, frames = settings.pop("mode", "RGB"), settings.pop("frames", 1)
    height, width = chance.integers(12, 56, 2)
    pixels = np.linspace(0, 255, int(height * width * 3)).reshape(height, width, 3).astype(np.uint8)
    pixels[height // 2 :] = chance.integers(0, 256, (height - height // 2, width, 3))
    if mode == "I;16":
        image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
    else:
        image = Image.fromarray(pixels).convert(mode)
    if frames > 1:
        settings |= {"save_all": True, "append_images": [image.rotate(90 * i) for i in range(1, frames)]}
    file = io.BytesIO()
    image.save(file, {"jpg": "JPEG"}.get(ending, ending.upper()), **settings)
    return file.getvalue()


def flipped(content: bytes, chance: np.random.Generator) -> bytes:
    """A few bits, most often near the beginning, where the headers are."""
    damaged = bytearray(content)
    end = len(content) if chance.random() < 0.4 else min(len(content), 200)
    for at in chance.integers(0, end, int(chance.integers(1, 12))):
        damaged[at] ^= 1 << int(chance.integers(8))
    return bytes(damaged)


def cut(content: bytes, chance: np.random.Generator) -> bytes:
    """Its beginning alone."""
    return content[: int(chance.integers(0, len(content)))]


def headed(content: bytes, chance: np.random.Generator) -> bytes:
    """With the beginning of a file of another kind."""
    ending = list(KINDS)[int(chance.integers(len(KINDS)))]
    other = sound(ending, KINDS[ending][0], chance)
    n = int(chance.integers(2, 64))
    return other[:n] + content[n if chance.random() < 0.5 else 0 :]


def overwritten(content: bytes, chance: np.random.Generator) -> bytes:
    """With a run of one byte, or with large lengths, somewhere."""
    start, n = int(chance.integers(0, len(content))), int(chance.integers(1, 40))
    return content[:start] + (b"\x00", b"\xff", b"\x7f")[int(chance.integers(3))] * n + content[start + n :]


def shuffled(content: bytes, chance: np.random.Generator) -> bytes:
    """With one piece of it repeated elsewhere."""
    a, b = sorted(chance.integers(0, len(content), 2).tolist())
    at = int(chance.integers(0, len(content)))
    return content[:at] + content[a:b] + content[at:]


DAMAGES = (flipped, cut, headed, overwritten, shuffled)


def damaged(n: int, seed: int):
    """n damaged images: a name, and its content."""
    chance = np.random.default_rng(seed)
    for i in range(n):
        ending = list(KINDS)[i % len(KINDS)]
        variants = KINDS[ending]
        content = sound(ending, variants[int(chance.integers(len(variants)))], chance)
        damage = DAMAGES[int(chance.integers(len(DAMAGES)))]
        yield f"{i:06}-{damage.__name__}.{ending}", damage(content, chance)


def main(n: int, seed: int) -> None:
    import faulthandler
    import warnings

    from cdclust.data.decode import Unreadable, decode

    warnings.simplefilter("ignore")
    reasons, slowest, name, readable = Counter(), (0.0, ""), "", 0
    for name, content in damaged(n, seed):
        faulthandler.dump_traceback_later(60, exit=True)
        print(name, file=sys.stderr)  # the last line is the image that a crash is to blame on
        start, why = time.process_time(), None
        try:
            pixels = decode(content, 16)
            assert pixels.shape == (3, 16, 16)
            assert pixels.dtype == np.uint8
        except Unreadable as reason:
            why = str(reason)
        slowest = max(slowest, (time.process_time() - start, name))
        readable += why is None
        if why is not None:
            assert why.strip()
            assert "\n" not in why
            reasons[" ".join(why.split()[:3])] += 1
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"n": n, "readable": readable, "slowest": slowest, "reasons": reasons.most_common(12)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
