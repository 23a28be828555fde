"""The system's OpenSSL, re2 and gRPC are bound to themselves, not to the copies that the Arrow wheel's libraries export.

libparquet of the wheel exports OpenSSL's symbols and libarrow_compute re2's; whichever stands first among a program's libraries serves all of
them. The loader itself says what it binds (LD_DEBUG=bindings).
"""

import pytest

from loader_bindings import SYSTEM, bindings, clashes


@pytest.mark.parametrize("name", ["link_order_ours", "headrace"])
def test_the_system_libraries_bind_to_themselves(build_dir, tmp_path, name):
    arguments = ["version"] if name == "headrace" else []
    found = bindings(build_dir / "bin" / name, tmp_path, *arguments)
    assert clashes(found) == []
    own = [1 for source, target, _ in found if SYSTEM.search(source) and SYSTEM.search(target)]
    assert len(own) > 100, "libssl, libcrypto and libre2 must be among the program's libraries"


def test_the_check_sees_the_clash_when_parquet_stands_first(build_dir, tmp_path):
    found = clashes(bindings(build_dir / "bin" / "link_order_turned_round", tmp_path))
    assert any("/libssl" in source and "/libparquet" in target for source, target, _ in found)
    assert len(found) > 100
