import os
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from adapters.sudocode import lock
from adapters.sudocode.failures import SudocodeError
from adapters.sudocode.lock import writer_lock

pytestmark = pytest.mark.anyio


async def test_one_writer_at_a_time(tmp_path: Path) -> None:
    inside = 0
    most = 0

    async def write() -> None:
        nonlocal inside, most
        async with writer_lock(tmp_path, wait_s=30):
            inside += 1
            most = max(most, inside)
            await anyio.lowlevel.checkpoint()
            inside -= 1

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(write)

    assert most == 1


async def test_a_writer_in_another_process_is_waited_for_and_then_named(tmp_path: Path) -> None:
    code = (
        "import sys, anyio\nfrom pathlib import Path\nfrom adapters.sudocode.lock import writer_lock\n"
        "async def main():\n async with writer_lock(Path(sys.argv[1]), wait_s=5):\n  print('held', flush=True)\n"
        "  sys.stdin.read()\nanyio.run(main)\n"
    )
    holder = await anyio.open_process(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert (await holder.stdout.receive()).startswith(b"held")

    with pytest.raises(SudocodeError) as caught:
        async with writer_lock(tmp_path, wait_s=0.1):
            raise AssertionError("two writers")

    assert (caught.value.code, caught.value.retryable) == ("database_busy", True)
    await holder.stdin.aclose()
    async with writer_lock(tmp_path, wait_s=30):
        pass
    await holder.wait()
    await holder.aclose()


async def test_a_file_system_that_cannot_lock_folders_is_locked_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = lock._try_lock
    folder_number = os.stat(tmp_path).st_ino  # noqa: PTH116  # the file system's own number

    def no_folders(descriptor: int) -> bool:
        if os.fstat(descriptor).st_ino == folder_number:
            raise OSError("not supported")
        return real(descriptor)

    monkeypatch.setattr(lock, "_try_lock", no_folders)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async with writer_lock(tmp_path, wait_s=1):
        with pytest.raises(SudocodeError):
            async with writer_lock(tmp_path, wait_s=0.05):
                raise AssertionError("two writers")

    assert [name.endswith(".lock") for name in os.listdir(tmp_path)] == [True]  # noqa: PTH208  # names only
