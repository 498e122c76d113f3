"""get_pytorch_dataloader: what it takes, what it gives, and what is left when processes end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from stoker.dataloader import PyTorchDataLoader, get_pytorch_dataloader
from support import WATCHDOG_S, ok, prelude, torch_module, until

torch = torch_module()
Data = torch.utils.data


class Squares:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.tensor([i * i]), i


class Many(Squares):
    def __getitems__(self, indices):
        return [("many", i) for i in indices]


class Draws(Squares):
    def __getitem__(self, i):
        return random.random(), np.random.random(), torch.rand(()).item()


class Table(Squares):
    """Large enough to be mapped rather than copied."""

    def __init__(self, n):
        super().__init__(n)
        self.rows = np.arange(n * 1000).reshape(n, 1000)
        self.small = np.arange(3)

    def __getitem__(self, i):
        self.rows[i] += 1  # this worker's page only
        return int(self.rows[i].sum()), self.rows.flags.owndata, os.getpid()


class Deadly(Squares):
    def __getitem__(self, i):
        if i == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return i


class Odd(Squares):
    def __getitem__(self, i):
        if i % 2:
            raise LookupError(f"no sample {i}")
        return i


class Unreadable(Squares):
    def __setstate__(self, state):
        raise OSError("the disk is gone")


class Gated:
    """How many workers unpickle at a time, seen from outside: a file for each that is at it."""

    def __init__(self, folder):
        self.folder = folder

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return i

    def __getstate__(self):
        return {"folder": self.folder}

    def __setstate__(self, state):
        self.__dict__.update(state)
        here = Path(self.folder, f"in-{os.getpid()}")
        here.touch()
        Path(self.folder, f"seen-{len(list(Path(self.folder).glob('in-*')))}-{os.getpid()}").touch()
        here.unlink()


class Told(Squares):
    def __getitem__(self, i):
        info = Data.get_worker_info()
        return info.id, info.num_workers, info.seed, info.dataset is self, os.getpid()


class Everlasting(Squares):
    def __getitem__(self, i):
        if i:
            signal.pause()
        return os.getpid()


def same(got, want):
    return all(torch.equal(g[0], w[0]) and torch.equal(g[1], w[1]) for g, w in zip(got, want, strict=True))


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"batch_size": 4, "drop_last": True}])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_same_batches_as_torch(options, shuffle):
    torch.manual_seed(7)
    want = list(Data.DataLoader(Squares(10), shuffle=shuffle, **options))
    torch.manual_seed(7)
    loader = get_pytorch_dataloader(Squares(10), shuffle=shuffle, num_workers=2, in_order=True, **options)
    got = list(loader)
    assert isinstance(loader, PyTorchDataLoader) and len(loader) == len(want) and same(got, want)
    assert [type(item) for item in got[0]] == [type(item) for item in want[0]]


def test_every_pass_is_shuffled_anew():
    generator = torch.Generator().manual_seed(1)
    loader = get_pytorch_dataloader(Squares(50), None, shuffle=True, generator=generator, in_order=True)
    first, second = ([int(i) for _, i in loader] for _ in range(2))
    assert first != second and sorted(first) == sorted(second) == list(range(50))


def test_samplers():
    def loaded(**options):
        return [i.tolist() for _, i in get_pytorch_dataloader(Squares(10), in_order=True, **options)]

    assert loaded(sampler=[3, 1], batch_size=2) == [[3, 1]]
    assert loaded(batch_sampler=[[3, 1], [2]]) == [[3, 1], [2]]
    loader = get_pytorch_dataloader(Squares(10), sampler=[], batch_size=2)
    assert list(loader) == [] and len(loader) == 0 and loader.sampler == [] and loader


def test_single_samples():
    loader = get_pytorch_dataloader(Squares(3), None, in_order=True)
    assert [(t.tolist(), i) for t, i in loader] == [([0], 0), ([1], 1), ([4], 2)]


def test_collate_fn_and_getitems():
    many = get_pytorch_dataloader(Many(5), 2, collate_fn=list, in_order=True)
    assert [[i for _, i in batch] for batch in many] == [[0, 1], [2, 3], [4]]


def test_without_in_order_everything_arrives():
    loader = get_pytorch_dataloader(Squares(40), 3, num_workers=2, prefetch_factor=3)
    assert sorted(i for _, batch in loader for i in batch.tolist()) == list(range(40))


def test_draws_depend_on_the_seed_only():
    def drawn(workers, seed):
        generator = torch.Generator().manual_seed(seed)
        loader = get_pytorch_dataloader(
            Draws(12), 2, num_workers=workers, collate_fn=list, generator=generator, in_order=True
        )
        return list(loader)

    first = drawn(1, 5)
    assert first == drawn(3, 5) and first != drawn(1, 6)
    assert len({draws for batch in first for draws in batch}) == 12


def test_the_data_set_is_shared_and_private():
    loader = get_pytorch_dataloader(Table(6), None, num_workers=2, in_order=True)
    sums = [sum(range(1000 * i, 1000 * i + 1000)) + 1000 for i in range(6)]
    for _ in range(2):  # workers of the second pass do not see what those of the first one changed
        passed = list(loader)
        assert [row for row, _, _ in passed] == sums
        assert not any(owned for _, owned, _ in passed)
        assert os.getpid() not in {pid for _, _, pid in passed}
    assert loader.dataset.rows[0, 0] == 0


@pytest.mark.parametrize("context", [None, "spawn"])
def test_workers_are_known_to_torch(context):
    loader = get_pytorch_dataloader(
        Told(64), 4, num_workers=3, collate_fn=list, multiprocessing_context=context
    )
    told = {sample for batch in loader for sample in batch}
    assert {count for _, count, _, _, _ in told} == {3} and all(own for _, _, _, own, _ in told)
    ids = {pid: number for number, _, _, _, pid in told}
    assert len(ids) == len(set(ids.values())) and set(ids.values()) <= {0, 1, 2}
    assert len({seed - number for number, _, seed, _, _ in told}) == 1
    assert Data.get_worker_info() is None


def test_nobody_waits_in_a_thread():
    loader = get_pytorch_dataloader(Squares(64), 4, num_workers=2, prefetch_factor=8)
    names = {thread.name for _ in loader for thread in threading.enumerate()}
    assert not [name for name in names if name.startswith("stoker-worker")]


def test_spawned_workers():
    code = """
        import os
        from stoker.dataloader import get_pytorch_dataloader
        from test_dataloader_torch import Table

        if __name__ == "__main__":
            before = set(os.listdir("/dev/shm"))
            loader = get_pytorch_dataloader(Table(6), None, in_order=True, multiprocessing_context="spawn")
            print([row - sum(range(1000 * i, 1000 * i + 1000)) for i, (row, _, _) in enumerate(loader)])
            print([name for name in set(os.listdir("/dev/shm")) - before if "sem" not in name])
        """
    assert ok(code) == "[1000, 1000, 1000, 1000, 1000, 1000]\n[]\n"


def test_failures_are_left_out_and_counted(caplog):
    loader = get_pytorch_dataloader(Odd(8), None, num_workers=2, in_order=True)
    assert list(loader) == [0, 2, 4, 6]
    assert {s["name"]: s["failed"] for s in loader.stats()["stages"]}["fetch"] == 4
    assert "LookupError: no sample 3" in caplog.text and "in __getitem__" in caplog.text
    assert "4 items failed: " in caplog.text


def test_a_worker_that_dies():
    loader = get_pytorch_dataloader(Deadly(1000), None, num_workers=2)
    text = r"A worker process exited unexpectedly. It was killed by signal 9 \(SIGKILL\)."
    for _ in range(2):  # the next pass has workers of its own
        got = []
        with pytest.raises(RuntimeError, match=text):
            for item in loader:
                got.append(item)
        assert 5 not in got and len(got) < 1000


def test_a_data_set_that_cannot_be_unpickled():
    loader = get_pytorch_dataloader(Unreadable(3))
    with pytest.raises(RuntimeError, match="could not be unpickled.*OSError: the disk is gone"):
        list(loader)


def test_a_data_set_that_does_not_pickle():
    class Local(Squares):
        pass

    with pytest.raises((AttributeError, TypeError)) as caught:
        get_pytorch_dataloader(Local(3))
    assert "must pickle" in caught.value.__notes__[0]


@pytest.mark.parametrize("limit", [1, 3])
def test_worker_init_concurrency(tmp_path, limit):
    loader = get_pytorch_dataloader(Gated(str(tmp_path)), None, num_workers=4, worker_init_concurrency=limit)
    assert sorted(loader) == list(range(8))
    seen = [int(path.name.split("-")[1]) for path in tmp_path.glob("seen-*")]
    assert seen and max(seen) <= limit and not list(tmp_path.glob("in-*"))


def test_leaving_early_ends_the_workers():
    loader = get_pytorch_dataloader(Everlasting(100), None, num_workers=2)
    for pid in loader:
        break
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_timeout():
    loader = get_pytorch_dataloader(Everlasting(100), None, timeout=5, in_order=True)
    passing = iter(loader)
    pid = next(passing)
    with pytest.raises(TimeoutError, match="not available after 5 seconds"):
        next(passing)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert list(get_pytorch_dataloader(Squares(1), None, timeout=0))


def test_workers_end_with_their_parent():
    code = """
        from stoker.dataloader import get_pytorch_dataloader
        from test_dataloader_torch import Everlasting

        loader = get_pytorch_dataloader(Everlasting(100), None, num_workers=2, sampler=[0, 0, 1, 1, 1, 1], in_order=True)
        passing = iter(loader)
        print(next(passing), next(passing), flush=True)
        next(passing)
        """
    import textwrap

    parent = subprocess.Popen(
        [sys.executable, "-c", prelude() + textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    try:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
    finally:
        parent.kill()
        parent.wait(WATCHDOG_S)
        parent.stdout.close()
    until(lambda: not any(is_alive(pid) for pid in pids))


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_descriptors_are_given_back():
    loader = get_pytorch_dataloader(Squares(8), 2, num_workers=2)
    list(loader)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        list(loader)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_no_workers_count_as_one():
    with pytest.warns(UserWarning, match="num_workers=0"):
        loader = get_pytorch_dataloader(Squares(3), num_workers=0)
    assert loader.num_workers == 1 and len(list(loader)) == 3


def test_pinning_without_a_device():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.warns(UserWarning, match="no CUDA device"):
        assert len(list(get_pytorch_dataloader(Squares(3), pin_memory=True))) == 3


class Stream(Data.IterableDataset):
    def __iter__(self):
        return iter([1])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"worker_init_fn": print}, "worker_init_fn is not supported: workers begin alike"),
        ({"pin_memory_device": "cuda"}, "pin_memory_device is not supported: batches are pinned"),
        ({"persistent_workers": True}, "persistent_workers is not supported: workers are started"),
        ({"sampler": [1], "shuffle": True}, "shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler"),
        ({"batch_sampler": [[1]], "shuffle": True}, "batch_sampler"),
        ({"batch_sampler": [[1]], "drop_last": True}, "batch_sampler"),
        ({"batch_sampler": [[1]], "sampler": [1]}, "batch_sampler"),
        ({"batch_size": None, "drop_last": True}, "drop_last"),
        ({"batch_size": 0}, "batch_size"),
        ({"num_workers": -1}, "num_workers"),
        ({"timeout": -1}, "timeout"),
        ({"prefetch_factor": 0}, "prefetch_factor"),
        ({"worker_init_concurrency": 0}, "worker_init_concurrency"),
        ({"multiprocessing_context": "magic"}, "magic"),
    ],
)
def test_arguments(options, text):
    with pytest.raises(ValueError, match=text):
        get_pytorch_dataloader(Squares(3), **options)


def test_iterable_data_sets():
    with pytest.raises(ValueError, match="IterableDataset"):
        get_pytorch_dataloader(Stream())
