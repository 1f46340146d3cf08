"""repack_wheel.py WHEEL CACHE: packs the large files of a wheel as tightly as its format allows, with zopfli.

The files and their order stay as they are. What was packed before is found in the folder CACHE, by its SHA-256: the command and the model
are the same in the wheels of all Pythons. The package zopfli has to be there.
"""

import hashlib
import os
import struct
import sys
import zipfile

import zopfli.zlib

LARGE = 2000


def packed(data, cache):
    """A deflate stream. zopfli writes one of zlib, which has two bytes before it and four behind."""
    name = os.path.join(cache, hashlib.sha256(data).hexdigest())
    if os.path.exists(name):
        with open(name, "rb") as file:
            return file.read()
    stream = zopfli.zlib.compress(data, numiterations=1)[2:-4]
    with open(name + ".new", "wb") as file:
        file.write(stream)
    os.replace(name + ".new", name)
    return stream


def raw_bytes(archive, info):
    """The bytes of an entry as they lie in the file."""
    archive.fp.seek(info.header_offset)
    name, extra = struct.unpack("<HH", archive.fp.read(30)[26:30])
    archive.fp.seek(info.header_offset + 30 + name + extra)
    return archive.fp.read(info.compress_size)


def main():
    path, cache = sys.argv[1:]
    os.makedirs(cache, exist_ok=True)
    source = zipfile.ZipFile(path)
    table = b""
    with open(path + ".new", "wb") as out:
        for info in source.infolist():
            stream, size = raw_bytes(source, info), info.file_size
            method = info.compress_type
            if size >= LARGE:
                tight = packed(source.read(info), cache)
                if method != zipfile.ZIP_DEFLATED or len(tight) < len(stream):
                    stream, method = tight, zipfile.ZIP_DEFLATED
            name = info.filename.encode()
            year, month, day, hour, minute, second = info.date_time
            when = (hour << 11 | minute << 5 | second // 2) | (year - 1980 << 9 | month << 5 | day) << 16
            rest = struct.pack("<HHIIIIHH", 0x800, method, when, info.CRC, len(stream), size, len(name), 0)
            offset = out.tell()
            out.write(b"PK\3\4" + struct.pack("<H", 20) + rest + name + stream)
            table += (b"PK\1\2" + struct.pack("<HH", 3 << 8 | 20, 20) + rest +
                      struct.pack("<HHHII", 0, 0, 0, info.external_attr, offset) + name)
        begin, count = out.tell(), len(source.infolist())
        out.write(table + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count, count, len(table), begin, 0))
    source.close()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(path + ".new") as new:
        assert old.namelist() == new.namelist() and new.testzip() is None
        for info in old.infolist():
            assert new.read(info.filename) == old.read(info) and \
                new.getinfo(info.filename).external_attr == info.external_attr, info.filename
    os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
