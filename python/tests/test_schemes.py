"""Mapping schemes in Python."""

import copy
import importlib.util
import json
import math
import re
import sys
import textwrap
from random import Random

import pytest

import floatgate as fg
from floatgate import policies

#: A small device, and the options that the example needs.
SMALL = {"geometry.blocks": 16, "capacity.spare": 0.5, "gc.soft_threshold": 4}
WRITES = "rw=randwrite bs=4k iodepth=8 number_ios=3000"


def loaded(root, name):
    spec = importlib.util.spec_from_file_location(name, root / f"examples/policies/python/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # for data classes
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example(root):
    return loaded(root, "append").AppendLog


@pytest.fixture(scope="module")
def log_block(root):
    return loaded(root, "log_block").LogBlock


def device(scheme, options=None):
    return fg.Device("tiny", SMALL | {"mapping.scheme": scheme} | (options or {}))


def measured(of, workload, **others):
    """Return the measurements, without the names of the device and the cost of the run."""
    found = json.loads(fg.run(of, workload, warn=False, **others).summary.to_json())
    for key in ("config", "config_digest", "device", "changes", "arguments", "run"):
        found.pop(key)
    return found


def test_without_copies_results_equal_those_of_page_mapping(example):
    """A write at a time is programmed at once by either scheme, to the same planes if these follow the unit."""
    plain = {"allocation": {"static": {"order": "s1"}}, "gc.soft_threshold": 1, "gc.hard_threshold": 1}
    job = "rw=randwrite bs=4k iodepth=1 number_ios=1500"
    page, log = (fg.run(device(name, plain), job).summary for name in ("page", example))
    assert log.write_amplification == page.write_amplification == 1
    assert log.requests.write.latency_us.to_dict() == page.requests.write.latency_us.to_dict()


def test_counts_follow_from_the_copies(example):
    summary = fg.run(device(example), WRITES, precondition="fill").summary
    pages = summary.flash.programs_by_cause
    assert pages.host == 3000
    assert summary.write_amplification == pytest.approx(1 + pages.merge / 3000)
    assert pages.merge > 0


def test_equal_runs_have_equal_results(example):
    once, again = (measured(device(example), WRITES, precondition="steady") for _ in range(2))
    assert once == again


def test_forks_have_schemes_of_their_own(example):
    first = fg.Simulator(device(example), precondition="fill")

    def write(simulator):
        write_units(simulator, [unit * 37 % 4096 for unit in range(500)])
        return simulator.completions().to_pydict()

    write(first)
    second = first.fork()
    assert write(first) == write(second)


def test_the_check_accepts_the_example(example):
    policies.check(device(example))


def test_the_check_finds_lost_data(example):
    class Forgets(example):
        def ended(self, cx, end):
            if isinstance(end, policies.Ended.Copies):
                gather = self.planes[end.number].gather
                gather.forget(cx)  # the units stay at their old addresses, which are erased
            return super().ended(cx, end)

    with pytest.raises(fg.PolicyError, match="cannot be given up|still holds data|operations wait forever"):
        policies.check(device(Forgets))


def test_the_check_knows_other_families():
    class Fewest(policies.Victim):
        def choose(self, plane, blocks, clock):
            return blocks.valid.argmin()

    class First(policies.Scheduler):
        def rank(self, cls):
            return 0

    class Beyond(policies.Victim):
        def choose(self, plane, blocks, clock):
            return len(blocks)

    small = {"geometry.blocks": 16, "capacity.spare": 0.5}
    policies.check(fg.Device("tiny", small | {"gc.victim": Fewest, "scheduler": First}))
    with pytest.raises(fg.PolicyError, match="chose"):
        policies.check(fg.Device("tiny", small | {"gc.victim": Beyond}))


def test_a_context_is_valid_during_the_call(example):
    kept = []

    class Keeps(example):
        def place(self, cx, write):
            kept[:] = [cx, cx.ftl, cx.ftl.blocks, cx.ftl.map, cx.ops, cx.tasks, cx.ops[write]]
            super().place(cx, write)

    fg.run(device(Keeps), "rw=write bs=4k number_ios=10")
    cx, ftl, blocks, table, ops, tasks, operation = kept
    for use in (
        cx.has_time,
        lambda: ftl.shape,
        lambda: blocks.block(0),
        lambda: table.owner(0),
        lambda: ops[0],
        lambda: tasks.push(policies.Call(0)),
        lambda: operation.lpn,
        lambda: setattr(operation, "plane", 1),
    ):
        with pytest.raises(RuntimeError, match="valid only during the call"):
            use()


def write_units(simulator, units):
    for unit in units:
        simulator.submit("write", unit * 4096, 4096)
        simulator.advance()


def cause_of(scheme, precondition="none", options=None):
    with pytest.raises(fg.PolicyError) as caught:
        fg.run(device(scheme, options), WRITES, precondition=precondition, warn=False)
    return caught.value.__cause__


@pytest.mark.parametrize("precondition", ["none", "fill"])
@pytest.mark.parametrize("method", ["place", "target", "bind", "ended"])
def test_an_exception_is_the_cause(example, method, precondition):
    def fails(self, *arguments):
        raise LookupError(f"nothing in {method}")

    cause = cause_of(type("Fails", (example,), {method: fails}), precondition)
    assert isinstance(cause, LookupError)
    assert str(cause) == f"nothing in {method}"


def test_an_exception_in_the_middle_ends_the_run(example):
    class Later(example):
        left = 700

        def ended(self, cx, end):
            self.left -= 1
            if not self.left:
                raise LookupError("that was enough")
            return super().ended(cx, end)

    assert str(cause_of(Later)) == "that was enough"
    assert str(cause_of(Later, "steady")) == "that was enough"
    with pytest.raises(fg.PolicyError, match="that was enough"):
        policies.check(device(Later))
    simulator = fg.Simulator(device(Later), precondition="none")
    with pytest.raises(fg.PolicyError, match="that was enough"):
        write_units(simulator, range(1000))
    with pytest.raises(fg.PolicyError, match="that was enough"):
        simulator.advance()


@pytest.mark.parametrize(
    ("method", "answer", "says"),
    [
        ("target", None, "target must return a Target, not None"),
        ("target", policies.Target(8, policies.Place.Unknown()), "there is no plane 8: there are 8"),
        ("bind", 5, "bind must return a Bound or None, not 5"),
        ("bind", policies.Bound(2, 7, 0), "unit 0, which is not in plane 7"),
        ("bind", policies.Bound(10, 0, 0), "class 10"),
        ("ended", None, "ended must return True or False, not None"),
    ],
)
def test_invalid_answers_are_errors(example, method, answer, says):
    assert says in str(cause_of(type("Answers", (example,), {method: lambda *_: answer})))


@pytest.mark.parametrize(
    ("misuse", "error", "says"),
    [
        (lambda cx, write: cx.bind(write, 10**6), IndexError, "there is no physical unit 1000000: there are 8192"),
        (lambda cx, _: cx.ops[77_777], KeyError, "there is no operation 77777"),
        (lambda cx, write: cx.enqueue(write), ValueError, "has no plane"),
        (lambda cx, _: cx.erase(3), ValueError, "block 3 cannot be erased"),
        (lambda cx, _: cx.release(3), ValueError, "no operation depends on block 3"),
        (lambda cx, _: cx.ftl.blocks.block(128), IndexError, "there is no block 128"),
        (lambda cx, _: cx.ftl.blocks.first_unit(-1), OverflowError, "out of range"),
        (lambda cx, _: cx.ftl.map.get(10**6), IndexError, "there is no logical unit 1000000"),
        (lambda cx, write: cx.ops[write].block, ValueError, "Write has no block"),
        (lambda _cx, _: policies.Gather().read_ended(), ValueError, "no unit of this Gather is being read"),
        (lambda cx, _: policies.Gather().add(cx, (0, policies.Purpose.Merge), 0), ValueError, "unit 0 is not valid"),
        (lambda cx, _: policies.give_up(cx, 0, policies.Purpose.Merge), ValueError, "not a kept block"),
        (lambda cx, _: [cx.ftl.blocks.open_logical(0) for _ in range(17)], ValueError, "plane 0 has no free block"),
    ],
)
def test_invalid_calls_are_errors(example, misuse, error, says):
    class Misuses(example):
        def place(self, cx, write):
            misuse(cx, write)

    cause = cause_of(Misuses)
    assert isinstance(cause, error)
    assert says in str(cause)


def test_a_method_without_a_context_changes_nothing(example):
    class Opens(example):
        def target(self, ftl, of):
            ftl.blocks.open_logical(0)

    assert "must not change the FTL" in str(cause_of(Opens))


def test_missing_methods_are_named():
    class Nothing(policies.Mapping):
        pass

    class Some(policies.WholeMap, policies.Unsaved, policies.Mapping):
        def changed(self, cx, lpn, change):
            pass

    names = "bind, blocks, can_go_on, changed, ended, load, look_up, make_room, place, recount, recover, report, save"
    with pytest.raises(fg.OptionError, match=f"the policy Nothing lacks the methods {names}, step, target$"):
        device(Nothing)
    with pytest.raises(fg.OptionError, match="lacks the methods bind, blocks, ended, place"):
        policies.register("some")(Some)
    with pytest.raises(fg.OptionError, match="`page` is a built-in policy of mapping.scheme"):
        policies.register("page")(type("All", (Nothing,), dict.fromkeys(Nothing.__abstractmethods__, print)))


def test_states_are_not_saved(example, tmp_path):
    simulator = fg.Simulator(device(example), precondition="fill")
    says = "mapping.scheme `append-log` is an external policy: its state cannot be saved"
    with pytest.raises(fg.FloatgateError, match=says):
        simulator.save(tmp_path / "state")


def test_devices_without_planes_of_units_are_refused(example):
    with pytest.raises(fg.FloatgateError, match='needs allocation = "static"'):
        fg.run(device(example, {"allocation": "dynamic"}), WRITES)


def test_values_equal_those_with_the_same_fields():
    target = policies.Target(3, policies.Place.At(5))
    assert target == policies.Target(3, policies.Place.At(ppn=5)) != policies.Target(3, policies.Place.Unknown())
    assert copy.deepcopy(target) == target
    assert policies.Kind.MergeRead != policies.Kind.MergeWrite
    match target.place:
        case policies.Place.At(ppn):
            assert ppn == 5
        case _:
            raise AssertionError


def test_a_scheme_sees_the_device(example):
    seen = {}

    class Sees(example):
        def place(self, cx, write):
            operation, shape, blocks = cx.ops[write], cx.ftl.shape, cx.ftl.blocks
            seen.update(kind=operation.kind, class_=operation.class_, plane=operation.plane)
            seen.update(units=cx.request_units(write))
            seen.update(planes=shape.planes, soft=shape.soft, blocks=len(blocks), full=blocks.data_units())
            assert (self.shape.planes, self.shape.data_units) == (shape.planes, shape.data_units)
            seen.update(location=cx.ftl.map.get(operation.lpn), time=cx.has_time(), of_plane=len(blocks.of_plane(0)))
            super().place(cx, write)

    fg.run(device(Sees), "rw=write bs=8k number_ios=3 iodepth=1")
    assert isinstance(seen.pop("location"), policies.Location.Slot)
    assert seen == {
        "kind": policies.Kind.Write,
        "class_": policies.OperationClass.HOST_PROGRAM,
        "plane": None,
        "units": 2,
        "planes": 8,
        "soft": 4,
        "blocks": 128,
        "full": 64,
        "time": True,
        "of_plane": 16,
    }


def test_the_page_shows_the_examples(root):
    text = (root / "docs/own-scheme.md").read_text()
    shown = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0]
    example = root / "examples/policies"
    scheme, in_rust = (example / path for path in ("python/log_block.py", "src/log_block.rs"))
    assert shown == scheme.read_text()
    assert all(len(path.read_text().splitlines()) < 300 for path in (scheme, in_rust))
    code = "".join(path.read_text() for path in sorted(example.rglob("*.rs")))
    parts = re.findall(r"^```rust\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert parts
    for part in parts:
        assert any(textwrap.indent(part, depth * " ") in code for depth in (0, 4, 8)), part


#: A plane of few small blocks, for log blocks. Half of the blocks are logical ones.
ONE_PLANE = {f"geometry.{level}": 1 for level in ("channels", "chips", "planes")} | {"capacity.spare": 0.5}


def copies_of(scheme, size, count, units):
    """Write units with the scheme to a full plane of `count` logical blocks of `size` units. Return the copies."""
    options = {"geometry.pages": size, "geometry.blocks": 2 * count, "gc.soft_threshold": 1, "mapping.scheme": scheme}
    requests = [(number * 1e-2, "write", unit * 4096, 4096) for number, unit in enumerate(units)]
    run = fg.run(fg.Device("tiny", ONE_PLANE | options), requests, precondition="fill", warn=False)
    pages = run.summary.flash.programs_by_cause
    assert pages.host == len(units)
    return pages.merge


@pytest.mark.parametrize(("size", "count"), [(4, 4), (8, 4), (4, 8)])
def test_full_merges_copy_each_logical_block_of_a_full_log(log_block, size, count):
    # Preconditioning leaves the log block full of the last logical block. Each further write that finds it full merges
    # all logical blocks that it has units of, and each merge copies all units.
    in_order, rounds = list(range(size * count)), 3
    assert copies_of(log_block, size, count, rounds * in_order) == rounds * count * size
    assert copies_of(log_block, size, count, in_order[:1]) == size
    assert copies_of(log_block, size, count, in_order[:size]) == size
    assert copies_of(log_block, size, count, in_order[: size + 1]) == 2 * size
    # A unit of each logical block in turn.
    strided = [size * (number % count) + number // count % size for number in range(rounds * size * count)]
    logs, of_a_log = rounds * count - 1, min(size, count)
    assert copies_of(log_block, size, count, strided) == size * (1 + logs * of_a_log)


def test_random_writes_spread_a_log_over_the_expected_logical_blocks(log_block):
    size, count, logs = 8, 6, 400
    random = Random(1)
    units = [random.randrange(size * count) for _ in range(logs * size + 1)]
    # The draws of each log block are known, so the copies are, too.
    of_logs = [{unit // size for unit in units[first : first + size]} for first in range(0, logs * size, size)]
    assert copies_of(log_block, size, count, units) == size * (1 + sum(map(len, of_logs)))
    expected = count * (1 - (1 - 1 / count) ** size)
    assert math.isclose(sum(map(len, of_logs)) / logs, expected, rel_tol=0.02)
