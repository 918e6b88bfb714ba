"""TIFF files for tests, by the letter of the format (TIFF 6.0): grey, uncompressed, little-endian, one strip a page."""
import pathlib
import struct

import numpy as np


def write_tiff(path, pages):
    """pages: [n, height, width], u1, u2 or f4."""
    count, height, width = pages.shape
    kind = 3 if pages.dtype == np.float32 else 1
    blob, link = bytearray(b"II*\0" + bytes(4)), 4
    for page in pages:
        data, at = page.tobytes(), len(blob)
        blob += data
        entries = [(256, width), (257, height), (258, page.itemsize * 8), (259, 1), (262, 1), (273, at), (277, 1), (278, height),
                   (279, len(data)), (339, kind)]
        struct.pack_into("<I", blob, link, len(blob))
        blob += struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
        link = len(blob)
        blob += bytes(4)
    pathlib.Path(path).write_bytes(blob)


def read_tiff(path):
    """(pages [n, height, width], ImageDescription of the first)."""
    blob = pathlib.Path(path).read_bytes()
    assert blob[:4] == b"II*\0", path
    pages, text, at = [], "", struct.unpack_from("<I", blob, 4)[0]
    while at:
        tags = {}
        for i in range(struct.unpack_from("<H", blob, at)[0]):
            tag, kind, count, value = struct.unpack_from("<HHII", blob, at + 2 + 12 * i)
            tags[tag] = value & 0xFFFF if kind == 3 and count == 1 else value
            if tag == 270 and not pages:
                text = blob[value:value + count].rstrip(b"\0").decode()
        assert tags[259] == 1 and tags[262] == 1, tags
        dtype = {(8, 1): "u1", (16, 1): "<u2", (32, 3): "<f4"}[tags[258], tags[339]]
        pages.append(np.frombuffer(blob, dtype, tags[256] * tags[257], tags[273]).reshape(tags[257], tags[256]))
        at = struct.unpack_from("<I", blob, at + 2 + 12 * struct.unpack_from("<H", blob, at)[0])[0]
    return np.stack(pages), text
