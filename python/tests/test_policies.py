"""Policies in Python."""

import collections
import gc
import itertools
import json
import pickle
import re
import signal
import subprocess
import sys
import threading
import traceback
from typing import ClassVar

import numpy as np
import pytest

import floatgate as fg
from conftest import MIXED
from floatgate import _compiling, policies

WRITES = "rw=randwrite bs=4k iodepth=8 number_ios=3000"
BUFFER = {"buffer.capacity": "256KiB"}


@policies.register("test-greedy")
class Greedy(policies.Victim):
    """Chooses the same block as the built-in policy: the one with the fewest valid units.

    Among blocks with equally few, it is the one that reached this number first.
    """

    def choose(self, plane, blocks, clock):
        return blocks.order.argmin()


@policies.register("test-cost-benefit")
class CostBenefit(policies.Victim):
    """Same as the built-in policy, with fractions that are exact in double precision."""

    def choose(self, plane, blocks, clock):
        units = self.device["geometry"]["pages"]
        valid = blocks["valid"].astype(float)
        gain = (clock - blocks["changed"] + 1) * (units - valid)
        ratio = np.divide(gain, 2 * valid, out=np.full(len(valid), np.inf), where=valid > 0)
        best = np.flatnonzero(ratio == ratio.max())
        return best[blocks["order"][best].argmin()]


@policies.register("test-always")
class Always(policies.Trigger):
    def wants(self, plane):
        assert plane.free > 1
        assert len(plane.blocks) == plane.closed > 0
        units = self.device["geometry"]["pages"]
        assert (units - plane.blocks["valid"]).sum() == plane.invalid
        assert (plane.blocks["changed"] <= plane.clock).all()
        return True


@policies.register("test-s1")
class S1(policies.StaticAllocation):
    """Chip, die, plane, channel: Hu et al. 2013, Section 4.2."""

    def planes(self, pages):
        size = self.device["geometry"]
        rest, chip = np.divmod(pages, size["chips"])
        rest, die = np.divmod(rest, size["dies"])
        rest, plane = np.divmod(rest, size["planes"])
        channel = rest % size["channels"]
        return ((channel * size["chips"] + chip) * size["dies"] + die) * size["planes"] + plane


@policies.register("test-lru")
class Lru(policies.Eviction):
    def __init__(self):
        self.order = collections.OrderedDict()

    def on_insert(self, entry, lpn, dirty, read):
        self.order[entry] = None

    def on_access(self, entry, write, dirty):
        self.order.move_to_end(entry)

    def on_remove(self, entry):
        del self.order[entry]

    def choose(self):
        return self.order.popitem(last=False)[0]


@policies.register("test-lru-of-units")
class LruOfUnits(policies.Eviction):
    """The same policy, without its own list."""

    def choose(self):
        units = self.units
        return units["entry"][units["used"].argmin()]


@policies.register("test-random")
class Random(policies.Victim):
    def __init__(self, share=1.0):
        self.share = share
        self.chosen = []

    def choose(self, plane, blocks, clock):
        self.chosen.append(int(self.rng.integers(max(1, int(len(blocks) * self.share)))))
        return self.chosen[-1]


@policies.register("test-first-plane")
class FirstPlane(policies.Allocation):
    def choose(self, planes):
        return 0


@policies.register("test-one-class")
class OneClass(policies.Classifier):
    def classify(self, write):
        return 0


@policies.register("test-halves")
class Halves(policies.Classifier):
    classes = 3

    def __init__(self, hot=100):
        self.hot = hot
        self.seen = []

    def classify(self, write):
        self.seen.append(write)
        return 2 if write.lpn < self.hot else int(self.rng.integers(2))


@policies.register("test-ranks")
class Ranks(policies.Scheduler):
    """The ranks of `read-first`."""

    def rank(self, cls):
        assert isinstance(cls, policies.OperationClass)
        if cls in (policies.OperationClass.HOST_READ, policies.OperationClass.MAP_READ):
            return 0
        second = (
            policies.OperationClass.URGENT_GC,
            policies.OperationClass.SUMMARY,
            policies.OperationClass.READ_AHEAD,
        )
        return 1 if cls in second else 2


@policies.register("test-read-first")
class ReadFirst(Ranks):
    """The same choice, by `pick`."""

    def pick(self, queue, now):
        return queue["rank"].argmin()


@policies.register("test-reads-before-writes")
class ReadsBeforeWrites(policies.Scheduler):
    reconsiders = True

    def rank(self, cls):
        return [1, 1, 2, 3, 0, 0, 1, 2, 3, 1][cls]


@policies.register("test-lottery")
class Lottery(Ranks):
    def pick(self, queue, now):
        return self.rng.integers(len(queue))


@policies.register("test-fails")
class Fails(policies.Victim):
    def choose(self, plane, blocks, clock):
        raise LookupError(f"nothing of {len(blocks)}")


def measured(options, workload=MIXED, device="hu2011", **others):
    """Return the measurements, without the names of the device and the cost of the run."""
    small = {"geometry.blocks": 32, "geometry.pages": 16, "capacity.spare": 0.3} if device == "hu2011" else {}
    chosen = fg.Device(device, small | options)
    others = {"precondition": "steady"} | others
    found = json.loads(fg.run(chosen, workload, warn=False, **others).summary.to_json())
    for key in ("config", "config_digest", "device", "changes", "arguments", "run"):
        found.pop(key)
    return found


@pytest.mark.parametrize(
    ("path", "built_in", "own", "others"),
    [
        ("gc.victim", "greedy", "test-greedy", {}),
        ("gc.victim", "greedy", Greedy, {"mapping.scheme": "dftl", "capacity.spare": 0.6}),
        ("gc.victim", "cost-benefit", "test-cost-benefit", {}),
        ("gc.trigger", "threshold", "test-always", {}),
        ("allocation", {"static": {"order": "s1"}}, "test-s1", {}),
        ("scheduler", "read-first", "test-ranks", {}),
        ("scheduler", "read-first", "test-read-first", {}),
        ("scheduler", "read-first", ReadFirst, {"allocation": "dynamic"}),
        ("scheduler", "reads-before-writes", "test-reads-before-writes", {}),
        ("buffer.eviction", "lru", "test-lru", BUFFER),
        ("buffer.eviction", "lru", "test-lru-of-units", BUFFER),
    ],
)
def test_results_equal_those_of_the_built_in_policy(path, built_in, own, others):
    assert measured(others | {path: own}) == measured(others | {path: built_in})


def test_a_wear_policy_levels_wear():
    seen = collections.Counter()

    class Levels(policies.Wear):
        """Opens the least worn block, refuses worn victims, and migrates the least worn block."""

        def pick_free(self, plane, free):
            assert 1 <= len(free) <= 8
            assert (free["block"] // self.device["geometry"]["blocks"] == plane.plane).all()
            seen["pick_free"] += 1
            return free["erases"].argmin()

        def allows(self, plane, block):
            seen["allows"] += 1
            assert block["block"] not in plane.blocks["block"]
            return block["erases"] <= plane.blocks["erases"].mean() + 4

        def erased(self, plane, block):
            seen["erased"] += 1
            assert block["erases"] > 0
            least = plane.blocks[plane.blocks["erases"].argmin()]
            return least["block"] if least["erases"] + 8 < plane.blocks["erases"].max() else None

    class PicksOnly(policies.Wear):
        def pick_free(self, plane, free):
            return 0

    skewed = "rw=randwrite bs=4k iodepth=8 number_ios=40k random_distribution=zoned:90/5:10/95"

    def spread(wear):
        device = fg.Device("tiny", {"gc.wear": wear, "gc.victim": "greedy"})
        return fg.run(device, skewed, warn=False, precondition="steady").summary.wear.blocks.stddev

    assert spread(PicksOnly) == spread("none")
    assert not seen
    assert spread(Levels) < spread("none")
    assert min(seen["pick_free"], seen["allows"], seen["erased"]) > 100


def test_a_classifier_separates_data(tmp_path):
    options = {"temperature": {"test-halves": {"hot": 50}}, "capacity.spare": 0.4}
    device = fg.Device("tiny", options)
    external = device.config["temperature"]["external"]
    assert (external["name"], external["classes"], external["options"]) == ("test-halves", 3, {"hot": 50})
    result = fg.run(device, WRITES, precondition="steady")
    classes = result.summary.temperature
    assert len(classes) == 3
    assert sum(each["units_written"] for each in classes) == result.summary.requests.write.count
    assert classes[0]["units_written"] > 0 < classes[1]["units_written"]
    assert measured(options, WRITES, "tiny") == measured(options, WRITES, "tiny")
    assert measured(options, WRITES, "tiny")["temperature"] != measured(options, WRITES, "tiny", seed=2)["temperature"]
    # Only one of two classes is used, which only takes an additional open block.
    one = measured({"temperature": "test-one-class"}, WRITES, "tiny", precondition="fill")
    assert one["temperature"][1]["units_written"] == 0
    # A simulator forks the classifier, but does not save it.
    simulator = fg.Simulator(device)
    simulator.submit("write", 0, 4096)
    simulator.advance()
    fork = simulator.fork()
    fork.submit("write", 4096, 4096)
    fork.advance()
    with pytest.raises(fg.FloatgateError, match=r"temperature `test-halves` is an external policy"):
        simulator.save(tmp_path / "state")

    class Wrong(policies.Classifier):
        def classify(self, write):
            return 2

    with pytest.raises(fg.PolicyError, match=r"temperature `Wrong`: chose number 2 of 2 classes"):
        fg.run(fg.Device("tiny", {"temperature": Wrong}), WRITES)


def test_a_scheduler_sees_waiting_operations():
    seen = []

    class Keeps(Ranks):
        def pick(self, queue, now):
            assert len(queue) > 1
            assert (queue["since"] <= now).all()
            names = ("since", "request", "lun", "plane", "stream", "class", "rank")
            assert not any(queue[name].flags.writeable for name in names)
            assert (queue.class_ == queue["class"]).all()
            seen.append({name: queue[name].copy() for name in names})

    one = {"geometry.channels": 1, "geometry.chips": 1, "geometry.dies": 1, "geometry.planes": 1}
    simulator = fg.Simulator(fg.Device("tiny", one | {"scheduler": Keeps}), precondition="fill")
    requests = ["write", "read", "write", "read"]
    for number, operation in enumerate(requests):
        simulator.submit(operation, number * 65536, 4096, at=simulator.now + 1_000_000)
    simulator.advance()
    first = next(queue for queue in seen if len(queue["rank"]) == 3)
    assert first["request"].tolist() == [1, 2, 3]
    assert [policies.OperationClass(cls).name for cls in first["class"]] == ["HOST_READ", "HOST_PROGRAM", "HOST_READ"]
    assert first["rank"].tolist() == [0, 2, 0]
    assert np.diff(first["since"].astype(int)).tolist() == [1_000_000] * 2
    assert first["lun"].tolist() == first["plane"].tolist() == first["stream"].tolist() == [0] * 3


def test_a_scheduler_may_choose_anything(tmp_path):
    lottery = {"scheduler": "test-lottery"}
    assert measured(lottery) == measured(lottery)
    assert measured(lottery) != measured({"scheduler": "read-first"})
    # A saved state does not contain the state of the policy, but a fork copies it.
    simulator = fg.Simulator(fg.Device("tiny", lottery), precondition="steady")
    simulator.save(tmp_path / "state")
    fg.Simulator.load(tmp_path / "state", fg.Device("tiny", lottery))
    first = fg.run(simulator, MIXED, warn=False)
    assert fg.run(simulator.fork(), MIXED, warn=False).summary.requests == first.summary.requests


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (-1, r"^scheduler `Picks`: chose number -1 of \d+ waiting operations, which are counted from 0"),
        (99, r"^scheduler `Picks`: chose number 99 of \d+ waiting operations"),
        ("first", "'str' object cannot be interpreted as an integer"),
    ],
)
def test_invalid_picks_are_errors(answer, says):
    class Picks(Ranks):
        def pick(self, queue, now):
            return answer

    with pytest.raises(fg.PolicyError, match=says):
        fg.run(fg.Device("tiny", {"scheduler": Picks}), MIXED)


def test_invalid_ranks_are_errors():
    class TooHigh(policies.Scheduler):
        def rank(self, cls):
            return 4 if cls == policies.OperationClass.GC else 0

    with pytest.raises(fg.PolicyError, match="scheduler `TooHigh`: ranked gc 4: ranks are 0 to 3, and 0 goes first"):
        fg.Simulator(fg.Device("tiny", {"scheduler": TooHigh}))

    class Raises(policies.Scheduler):
        def rank(self, cls):
            raise LookupError(cls.name)

    with pytest.raises(fg.PolicyError, match="scheduler `Raises`: LookupError: HOST_READ"):
        fg.Simulator(fg.Device("tiny", {"scheduler": Raises}))
    with pytest.raises(fg.OptionError, match="`fcfs` is a built-in policy of scheduler"):
        policies.register("fcfs")(Ranks)


def test_results_identify_the_policy(tmp_path):
    device = fg.Device("tiny", {"gc.victim": {"test-random": {"share": 0.5}}})
    assert device.policies == {"gc.victim": Random}
    external = device.config["gc"]["victim"]["external"]
    assert external == {"name": "test-random", "source": Random._source_digest, "options": {"share": 0.5}}
    result = fg.run(device, MIXED, warn=False)
    assert result.summary.config["gc"]["victim"]["external"] == external
    assert result.summary.config_digest == device.digest
    assert result.label == "tiny gc.victim=test-random gc.victim.external.options.share=0.5"
    result.save(tmp_path / "result")
    assert fg.load(tmp_path / "result").summary.to_json() == result.summary.to_json()
    result.report(tmp_path / "report.html")
    assert "test-random" in (tmp_path / "report.html").read_text()

    # A policy with the same name and another source makes another device.
    class Other(Random):
        def choose(self, plane, blocks, clock):
            return 0

    Other.name = "test-random"
    other = fg.Device("tiny", {"gc.victim": {Other: {"share": 0.5}}})
    assert other.config["gc"]["victim"]["external"]["name"] == "test-random"
    assert other.digest != device.digest
    assert device.with_options({"gc.victim": "fifo"}).policies == {}


def test_random_numbers_depend_on_the_seed():
    def drawn(seed):
        return measured({"gc.victim": "test-random"}, WRITES, "tiny", seed=seed, precondition="steady")

    assert drawn(1) == drawn(1)
    assert drawn(1)["gc"] != drawn(2)["gc"]
    assert drawn(1) != measured({"gc.victim": "random"}, WRITES, "tiny", precondition="steady")


def test_blocks_are_read_only_columns_of_the_simulator():
    kept = []
    last = {}

    class Keeps(policies.Victim):
        def choose(self, plane, blocks, clock):
            assert not any(blocks[name].flags.writeable for name in blocks.__slots__)
            assert (blocks["closed"] <= blocks["changed"]).all()
            assert (blocks["changed"] <= clock).all()
            assert (blocks["block"] // self.device["geometry"]["blocks"] == plane).all()
            assert len(set(blocks.block)) == len(blocks) == len(blocks.order)
            # The order is that of valid units, and has no equal ranks.
            assert (np.diff(blocks.valid[blocks.order.argsort()].astype(int)) >= 0).all()
            assert len(set(blocks.order)) == len(blocks)
            kept.append(blocks)
            last.update({name: blocks[name].copy() for name in blocks.__slots__})
            return blocks.order.argmin()

    simulator = fg.Simulator(fg.Device("tiny", {"gc.victim": Keeps}), precondition="steady")
    assert len(kept) > 100
    # Views are made once for each plane and number of blocks.
    assert len({id(blocks) for blocks in kept}) < 40
    with pytest.raises(ValueError, match="read-only"):
        kept[0].valid[0] = 0
    # Erase counts are those of the simulator.
    erases = simulator.inspect().block_erases
    assert (last["erases"] <= erases[last["block"]]).all()
    assert last["erases"].max() > 0
    with pytest.raises(KeyError, match="no column 'vald' .nearest: valid"):
        kept[0]["vald"]
    # Arrays that are kept for longer than the device do not dangle.
    blocks = kept[-1]
    del simulator
    kept.clear()
    gc.collect()
    assert len(blocks.valid.copy()) == len(blocks)


def test_a_fork_has_its_own_columns():
    class Keeps(policies.Victim):
        seen: ClassVar[list] = []

        def choose(self, plane, blocks, clock):
            self.seen.append((id(self), blocks.order.__array_interface__["data"][0]))
            return blocks.order.argmin()

    simulator = fg.Simulator(fg.Device("tiny", {"gc.victim": Keeps}), precondition="steady")
    fork = simulator.fork()
    Keeps.seen.clear()
    for one in (simulator, fork, simulator):
        write(one, range(0, 1 << 20, 4096))
    of_each = collections.defaultdict(set)
    for policy, address in Keeps.seen:
        of_each[policy].add(address)
    own, other = of_each.values()
    assert not own & other


def test_an_exception_of_a_policy_is_the_cause():
    with pytest.raises(fg.PolicyError, match=r"^gc.victim `test-fails`: LookupError: .*nothing of \d+") as raised:
        fg.run(fg.Device("tiny", {"gc.victim": "test-fails"}), WRITES, precondition="steady")
    cause = raised.value.__cause__
    assert isinstance(cause, LookupError)
    assert traceback.extract_tb(cause.__traceback__)[-1].line.startswith("raise LookupError(")
    assert isinstance(raised.value, fg.SimulationError)


def write(simulator, addresses):
    for address in addresses:
        simulator.submit("write", address, "4KiB")
        simulator.advance()


def test_a_failed_simulator_cannot_continue():
    class Later(policies.Victim):
        ready = False

        def choose(self, plane, blocks, clock):
            if Later.ready:
                raise LookupError("now")
            return blocks.order.argmin()

    simulator = fg.Simulator(fg.Device("tiny", {"gc.victim": Later}), precondition="steady")
    Later.ready = True
    with pytest.raises(fg.PolicyError, match="now"):
        write(simulator, range(0, 16 << 20, 4096))
    Later.ready = False
    with pytest.raises(fg.PolicyError, match="now"):
        simulator.advance()
    with pytest.raises(fg.PolicyError, match="now"):
        simulator.fork()


class Answers(policies.Victim):
    answer = None

    def choose(self, plane, blocks, clock):
        return self.answer


@pytest.mark.parametrize(
    ("answer", "says", "cause"),
    [
        (99_999, "chose number 99999 of", type(None)),
        (-1, "chose number -1 of", type(None)),
        (1 << 70, "OverflowError", OverflowError),
        (0.5, "'float' object cannot be interpreted as an integer", TypeError),
        (None, "'NoneType' object cannot be interpreted as an integer", TypeError),
    ],
)
def test_invalid_choices_are_errors(answer, says, cause, monkeypatch):
    monkeypatch.setattr(Answers, "answer", answer)
    with pytest.raises(fg.PolicyError, match=says) as raised:
        fg.run(fg.Device("tiny", {"gc.victim": Answers}), WRITES, precondition="steady")
    assert isinstance(raised.value.__cause__, cause)


#: Mistaken return values of methods. A method without `return` returns None.
NONSENSE = [None, float("nan"), "0", b"0", [], [0], {}, object(), -1, 1 << 40, 1 << 70, np.array([0, 1])]


class Endless(policies.Eviction):
    def choose(self):
        return itertools.count()


class Usual:
    """A policy of each family that works."""

    class Victim(policies.Victim):
        def choose(self, plane, blocks, clock):
            return blocks.order.argmin()

    class Trigger(policies.Trigger):
        def wants(self, plane):
            return True

    class Wear(policies.Wear):
        def pick_free(self, plane, free):
            return 0

        def allows(self, plane, block):
            return True

        def erased(self, plane, block):
            return None

    class Classifier(policies.Classifier):
        def classify(self, write):
            return 0

    class Allocation(policies.Allocation):
        def choose(self, planes):
            return 0

    class Eviction(policies.Eviction):
        def choose(self):
            return self.units["entry"][0]

    class Scheduler(policies.Scheduler):
        def rank(self, cls):
            return 0

        def pick(self, queue, now):
            return None


@pytest.mark.parametrize(
    ("family", "method"),
    [
        (Usual.Victim, "choose"),
        (Usual.Trigger, "wants"),
        (Usual.Wear, "pick_free"),
        (Usual.Wear, "allows"),
        (Usual.Wear, "erased"),
        (Usual.Classifier, "classify"),
        (Usual.Allocation, "choose"),
        (Usual.Eviction, "choose"),
        (Usual.Scheduler, "pick"),
    ],
)
def test_nonsense_in_the_middle_of_a_run_is_an_error(family, method):
    """A policy that works for a while, and then returns nonsense or raises, ends the run with an error of its own."""

    def run(answer):
        calls = itertools.count()

        def answers(self, *given):
            if next(calls) < 50:
                return getattr(family, method)(self, *given)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        made = type("Turns", (family,), {method: answers})
        options = {family.path: made, **(BUFFER if family is Usual.Eviction else {})}
        fg.run(fg.Device("tiny", options), WRITES, precondition="steady", warn=False)

    # None is a valid answer of these methods.
    for answer in NONSENSE[method in {"erased", "pick"} :]:
        with pytest.raises(fg.PolicyError, match=f"^{family.path} `Turns`: "):
            run(answer)
    for error in (LookupError("now"), MemoryError(), StopIteration(), RecursionError()):
        with pytest.raises(fg.PolicyError) as raised:
            run(error)
        assert raised.value.__cause__ is error
    for error in (KeyboardInterrupt("now"), SystemExit(3)):
        with pytest.raises(type(error)) as raised:
            run(error)
        assert raised.value is error


@pytest.mark.parametrize("method", ["on_insert", "on_access", "on_clean", "on_remove"])
def test_an_exception_in_a_notification_is_an_error(method):
    def fails(self, *given):
        raise LookupError(method)

    made = type("Hears", (policies.Eviction,), {method: fails, "choose": lambda self: self.units["entry"][0]})
    simulator = fg.Simulator(fg.Device("tiny", {"buffer.eviction": made, **BUFFER}), precondition="fill")

    def write_again_flush_and_trim():
        for operation in ("write", "write", "flush", "trim"):
            simulator.submit(operation, 0, 0 if operation == "flush" else 4096)
            simulator.advance()

    with pytest.raises(fg.PolicyError, match=f"^buffer.eviction `Hears`: LookupError: '?{method}"):
        write_again_flush_and_trim()


def test_an_endless_choice_is_an_error():
    device = fg.Device("tiny", {"buffer.eviction": Endless, **BUFFER})
    with pytest.raises(fg.PolicyError, match=r"chose more than the \d+ entries of the buffer"):
        fg.run(device, WRITES)


def test_invalid_tables_are_errors():
    class Table(policies.StaticAllocation):
        def __init__(self, kind):
            self.kind = kind

        def planes(self, pages):
            many = self.device["geometry"]["channels"] * 100
            return {"one": pages * 0, "short": [0], "text": ["0"] * len(pages), "far": pages * 0 + many,
                    "negative": -1 - pages.astype(int), "square": [[0]]}[self.kind]  # fmt: skip

    for kind, says in [
        ("one", "gave plane 0 .* of which it can hold"),
        ("short", "gave 1 planes for"),
        ("text", "integers"),
        ("far", "gave page 0 to plane"),
        ("negative", "gave page 0 to plane"),
        ("square", "one dimension"),
    ]:
        with pytest.raises(fg.PolicyError, match=says):
            fg.Simulator(fg.Device("tiny", {"allocation": {Table: {"kind": kind}}}))


def test_dynamic_allocation_and_evictions_of_several():
    class Two(policies.Eviction):
        def choose(self):
            units = self.units
            assert set(units.dtype.names) == {"entry", "lpn", "dirty", "inserted", "used", "written"}
            assert (units["inserted"] <= units["used"]).all()
            return units["entry"][:2]

    first = measured({"allocation": "test-first-plane", "buffer.eviction": Two, **BUFFER}, precondition="fill")
    again = measured({"allocation": FirstPlane, "buffer.eviction": Two, **BUFFER}, precondition="fill")
    assert first == again
    assert first != measured({"allocation": "dynamic", "buffer.eviction": "lru", **BUFFER}, precondition="fill")


def test_forks_copy_policies():
    """A fork has the same future, and its random numbers do not affect the other simulator."""
    simulator = fg.Simulator(fg.Device("tiny", {"gc.victim": "test-random"}), precondition="steady")
    first = fg.run(simulator, WRITES, warn=False)
    again = fg.run(simulator.fork(), WRITES, warn=False)
    fresh = fg.run(simulator.device, WRITES, precondition="steady", warn=False)
    for other in (again, fresh):
        assert other.summary.gc == first.summary.gc

    class Stubborn(Random):
        def fork(self):
            raise NotImplementedError("one of a kind")

    simulator = fg.Simulator(fg.Device("tiny", {"gc.victim": Stubborn}))
    with pytest.raises(fg.PolicyError, match="one of a kind"):
        simulator.fork()


def test_forked_evictions_see_the_forked_buffer():
    device = fg.Device("tiny", {"buffer.eviction": "test-lru-of-units", **BUFFER})
    simulator = fg.Simulator(device)
    write(simulator, range(0, 1 << 20, 4096))
    fork = simulator.fork()
    for one in (simulator, fork):
        write(one, range(0, 1 << 20, 8192))
    assert fork.now == simulator.now
    assert fork.counters() == simulator.counters()


def test_sweeps_accept_policies(tmp_path):
    space = {"gc.victim": ["greedy", "test-greedy", Greedy]}
    options = {"device": "tiny", "workload": WRITES, "store": tmp_path / "store"}
    table = fg.sweep(space, n_jobs=2, **options)
    assert table["error"].to_pylist() == [None] * 3
    assert table["gc.victim"].to_pylist() == ["greedy", "test-greedy", "test-greedy"]
    digests = table["config_digest"].to_pylist()
    assert digests[1] == digests[2] != digests[0]
    assert len(set(table["write_amplification"].to_pylist())) == 1
    assert len(list((tmp_path / "store").glob("*.parquet"))) == 2
    assert fg.sweep(space, n_jobs=1, **options).equals(table)


def test_classes_of_a_script_reach_other_processes():
    """A class of a script has no module from which other processes can import it."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["None", "None"]


SCRIPT = """
import floatgate as fg

@fg.policies.register("mine")
class Mine(fg.policies.Victim):
    def choose(self, plane, blocks, clock):
        return blocks.order.argmin()

table = fg.sweep({"gc.victim": ["mine", Mine]}, device="tiny", workload="rw=randwrite number_ios=2000", n_jobs=2)
print(*table["error"].to_pylist())
"""


def test_devices_are_pickled_with_their_policies():
    device = fg.Device("tiny", {"gc.victim": "test-greedy"})
    again = pickle.loads(pickle.dumps(device))
    assert again == device
    assert again.policies == {"gc.victim": Greedy}


def test_device_files_name_policies(tmp_path, command):
    place = tmp_path / "mine.toml"
    place.write_text('base = "tiny"\n[gc]\nvictim = { external = { name = "test-greedy" } }\n')
    device = fg.Device(place)
    assert device.policies == {"gc.victim": Greedy}
    assert device == fg.Device("tiny", {"gc.victim": "test-greedy"})
    assert fg.Device.from_toml(device.to_toml()) == device
    fg.run(device, MIXED, warn=False)

    said = command("run", place, MIXED, status=2)
    assert "gc.victim: `test-greedy` is not a built-in policy" in said
    assert "Python" in said
    place.write_text(place.read_text().replace("test-greedy", "missing"))
    with pytest.raises(fg.ConfigError, match="no policy in Python is registered as `missing`.*test-greedy"):
        fg.Device(place)
    changed = device.to_toml().replace(Greedy._source_digest, "0" * 32)
    with pytest.raises(fg.ConfigError, match="`test-greedy` has changed"):
        fg.Device.from_toml(changed)


def test_mistakes():
    with pytest.raises(fg.ConfigError, match="gc.victim.*unknown name `test-gredy`") as raised:
        fg.Device("tiny", {"gc.victim": "test-gredy"})
    assert re.search(r"^registered in Python for gc.victim: .*test-greedy", str(raised.value), re.MULTILINE)
    assert raised.value.problems[0].path == "gc.victim"
    with pytest.raises(fg.OptionError, match="Greedy is a policy for gc.victim, not for allocation"):
        fg.Device("tiny", {"allocation": Greedy})
    with pytest.raises(fg.ConfigError, match="takes the options .*share"):
        fg.Device("tiny", {"gc.victim": {"test-random": {"shares": 1}}})
    with pytest.raises(fg.OptionError, match="lacks the method choose"):
        policies.register("nothing")(type("Nothing", (policies.Victim,), {}))
    with pytest.raises(fg.OptionError, match="`greedy` is a built-in policy"):
        policies.register("greedy")(Greedy)
    with pytest.raises(fg.OptionError, match="not a policy"):
        policies.register("text")(str)
    assert "test-greedy" in policies.registered()["gc.victim"]


def test_digests_follow_the_source():
    texts = ["return 0", "return 0 + 0", "return 0"]
    made = []
    for text in texts:
        names = {"fg": fg}
        exec(f"class P(fg.policies.Victim):\n    def choose(self, plane, blocks, clock):\n        {text}", names)
        made.append(policies._source(names["P"]))
    # Without a source file, the digest is that of the compiled code, including computed constants.
    assert made[0] == made[2]
    assert len(made[0]) == 32

    class Derived(Greedy):
        pass

    assert policies._source(Derived) != policies._source(Greedy)


def compiled(kind, function, name="choose"):
    """Return a policy with a compiled function."""
    return type("Compiled", (kind,), {name: staticmethod(function), "rank": Ranks.rank})


def test_compiled_policies_equal_those_of_python():
    numba = pytest.importorskip("numba")

    @numba.njit
    def greedy(plane, blocks, clock):
        return blocks.order.argmin()

    assert measured({"gc.victim": compiled(policies.Victim, greedy)}) == measured({"gc.victim": "greedy"})

    @numba.njit
    def all_columns(plane, blocks, clock):
        units = 0
        for row in range(blocks.valid.size):
            wear = np.int64(blocks.erases[row]) * np.int64(blocks.block[row])
            units += blocks.closed[row] + blocks.changed[row] + wear + clock + np.int64(plane)
        return units % blocks.valid.size

    class AllColumns(policies.Victim):
        def choose(self, plane, blocks, clock):
            wear = blocks.erases.astype(np.int64) * blocks.block
            sums = blocks.closed + blocks.changed + wear + clock + plane
            return int(sums.sum() % len(blocks))

    assert measured({"gc.victim": compiled(policies.Victim, all_columns)}) == measured({"gc.victim": AllColumns})

    @numba.njit
    def first(planes):
        return 0

    own = measured({"allocation": compiled(policies.Allocation, first)})
    assert own == measured({"allocation": FirstPlane})

    @numba.njit
    def lowest(queue, now):
        return queue.rank.argmin()

    own = measured({"scheduler": compiled(policies.Scheduler, lowest, "pick")})
    assert own == measured({"scheduler": "read-first"})

    @numba.njit
    def by_rank(queue, now):
        return -1

    own = measured({"scheduler": compiled(policies.Scheduler, by_rank, "pick")})
    assert own == measured({"scheduler": "read-first"})


def test_c_functions_are_called_by_address():
    numba = pytest.importorskip("numba")

    @numba.cfunc(_compiling.VICTIM)
    def greedy(plane, clock, count, block, valid, erases, closed, changed, order):  # noqa: PLR0917
        return numba.carray(order, count).argmin()

    device = fg.Device("tiny", {"gc.victim": compiled(policies.Victim, greedy)})
    forked = fg.run(fg.Simulator(device, precondition="steady"), WRITES, warn=False)
    again = fg.run(fg.Device("tiny", {"gc.victim": "greedy"}), WRITES, precondition="steady", warn=False)
    assert forked.summary.gc == again.summary.gc

    @numba.cfunc("int64(uint32)")
    def other(count):
        return 0

    with pytest.raises(fg.ConfigError, match=r"`choose` has the signature .*uint32.*; expected int64\(uint32, int64"):
        fg.Device("tiny", {"gc.victim": compiled(policies.Victim, other)})

    @numba.njit
    def wrong(plane, blocks, clock):
        return blocks.vald.argmin()

    with pytest.raises(fg.ConfigError, match="^gc.victim: the policy `Compiled`: `choose` cannot be compiled: .*vald"):
        fg.Device("tiny", {"gc.victim": compiled(policies.Victim, wrong)})

    @numba.njit
    def short(plane):
        return 0

    for kind, path, name in [(policies.Allocation, "allocation", "choose"), (policies.Scheduler, "scheduler", "pick")]:
        with pytest.raises(fg.ConfigError, match=f"^{path}: the policy `Compiled`: `{name}` cannot be compiled: "):
            fg.Device("tiny", {path: compiled(kind, short if name == "pick" else wrong, name)})

    class Bound(policies.Victim):
        @numba.njit
        def choose(self, plane, blocks, clock):
            return 0

    with pytest.raises(fg.ConfigError, match="put @staticmethod above"):
        fg.Device("tiny", {"gc.victim": Bound})

    @numba.njit
    def far(plane, blocks, clock):
        return blocks.valid.size

    with pytest.raises(fg.PolicyError, match=r"chose number \d+ of \d+ candidates"):
        fg.run(fg.Device("tiny", {"gc.victim": compiled(policies.Victim, far)}), WRITES, precondition="steady")


def test_other_threads_run_during_a_policy():
    beats = []
    ended = threading.Event()

    def beat():
        while not ended.wait(0.002):
            beats.append(None)

    thread = threading.Thread(target=beat)
    thread.start()
    fg.run(fg.Device("tiny", {"gc.victim": Greedy}), "rw=randwrite bs=4k iodepth=8 number_ios=60k",
           precondition="steady", warn=False)  # fmt: skip
    ended.set()
    thread.join()
    assert len(beats) > 3


def test_other_threads_run():
    seen = []

    class Waits(policies.Victim):
        def choose(self, plane, blocks, clock):
            seen.append(threading.get_ident())
            return blocks.order.argmin()

    thread = threading.Thread(target=fg.run, args=(fg.Device("tiny", {"gc.victim": Waits}), WRITES),
                              kwargs={"precondition": "steady", "warn": False})  # fmt: skip
    thread.start()
    thread.join()
    assert set(seen) == {thread.ident}


def test_ctrl_c_interrupts_a_policy():
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "choosing\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
        assert process.wait() == 0


ENDLESS = """
import floatgate as fg

class Endless(fg.policies.Victim):
    def choose(self, plane, blocks, clock):
        print("choosing", flush=True)
        while True:
            pass

try:
    fg.run(fg.Device("tiny", {"gc.victim": Endless}), "rw=randwrite number_ios=1000", precondition="steady")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("concurrency", ["plane", "plane-reads"])
def test_a_policy_sees_the_planes_of_the_ftl(concurrency):
    """With `plane-reads`, the FTL sees the planes of a die as one, whose blocks have the pages of all of them."""
    together = 2 if concurrency == "plane-reads" else 1
    asked = []

    class Fills(policies.StaticAllocation):
        def planes(self, pages):
            assert self.shape.planes == 8 // together
            return pages % self.shape.planes

    class Counts(policies.Trigger):
        def wants(self, plane):
            assert self.shape.data_units == 64 * together
            valid = plane.blocks["valid"].sum()
            assert plane.invalid == plane.closed * self.shape.data_units - valid
            asked.append(plane)
            return True

    options = {"nand.concurrency": concurrency, "allocation": Fills, "gc.trigger": Counts}
    fg.run(fg.Device("tiny", options), "rw=randwrite bs=4k number_ios=4k", precondition="steady", warn=False)
    assert asked
