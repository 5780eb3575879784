"""Log-block mappings as sets and lists, without flash, planes or time: an oracle for write amplification.

Units are written one at a time. Nothing here is taken from the simulator. Trimmed units stay in place and are listed,
and merges consult the list, as in Yoo et al. 2013.
"""


class Hybrid:
    """A device of `count` logical blocks of `pages` pages. `home` is the log block of a unit, or "data"."""

    def __init__(self, scheme, count, pages, logs, window=0):
        self.scheme, self.pages, self.limits, self.window = scheme, pages, logs, window
        self.data = {number: set() for number in range(count)}
        self.logs = {kind: [] for kind in logs}  # Oldest first.
        self.home = {}
        self.trims = set()
        self.copies = self.clock = 0
        self.merges = {"switch": 0, "partial": 0, "full": 0}
        self.associativity = []
        self.last = {}

    def is_in(self, unit, log):
        return self.home.get(unit) is log and unit not in self.trims

    def valid(self, log):
        return [unit for unit in dict.fromkeys(log["units"]) if self.is_in(unit, log)]

    def write(self, unit):
        self.trims.discard(unit)
        number, offset = divmod(unit, self.pages)
        kind = self.kind_of(unit, number, offset)
        log = self.log_for(kind, number, offset)
        if kind == "sequential":
            assert offset == len(log["units"])
        log["units"].append(unit)
        log["used"] = self.clock
        self.data[number].discard(unit)
        self.home[unit] = log
        self.last[unit] = self.clock
        self.clock += 1

    def trim(self, unit):
        if unit in self.home:
            self.trims.add(unit)

    def kind_of(self, unit, number, offset):
        if self.scheme == "bast":
            return "own"
        continues = any(log["owner"] == number and len(log["units"]) == offset for log in self.logs["sequential"])
        if continues or offset == 0:
            return "sequential"
        if self.scheme == "fast":
            return "random"
        return "hot" if self.clock - self.last.get(unit, -(10**9)) <= self.window else "cold"

    def log_for(self, kind, number, offset):
        owned = kind in ("own", "sequential")
        logs = self.logs[kind]
        for log in logs:
            if owned and log["owner"] == number:
                if len(log["units"]) < self.pages and (kind == "own" or offset == len(log["units"])):
                    return log
                self.reclaim_owned(kind, log)
                break
            if not owned and len(log["units"]) < self.pages:
                return log
        if len(logs) == self.limits[kind]:
            if owned:
                self.reclaim_owned(kind, min(logs, key=lambda log: log["used"]))
            else:
                self.reclaim_shared(kind)
        logs.append({"owner": number if owned else None, "units": [], "used": self.clock})
        return logs[-1]

    def reclaim_owned(self, kind, log):
        number, size = log["owner"], len(log["units"])
        in_order = [unit % self.pages for unit in log["units"]] == list(range(size))
        rest = {unit for unit in self.data[number] if unit not in self.trims}
        self.associativity.append(1)
        self.logs[kind].remove(log)
        if not in_order or any(unit % self.pages < size for unit in rest):
            if self.valid(log):
                self.full_merge(number)
            return
        self.merges["partial" if rest else "switch"] += 1
        self.copies += len(rest)
        self.settle(number, rest | {unit for unit in log["units"] if self.is_in(unit, log)})

    def reclaim_shared(self, kind):
        # The oldest one. With LAST, fewer valid units come first.
        logs = self.logs[kind]
        log = min(logs, key=lambda log: len(self.valid(log))) if self.scheme == "last" else logs[0]
        numbers = sorted({unit // self.pages for unit in self.valid(log)})
        self.associativity.append(len(numbers))
        self.logs[kind].remove(log)
        for number in numbers:
            self.full_merge(number)

    def full_merge(self, number):
        units = {unit for unit in range(number * self.pages, (number + 1) * self.pages) if unit in self.home}
        units -= self.trims
        self.copies += len(units)
        self.merges["full"] += 1
        self.settle(number, units)

    def settle(self, number, units):
        """Make `units` the contents of the data block. Other listed units of the logical block are forgotten."""
        for unit in range(number * self.pages, (number + 1) * self.pages):
            if unit in self.trims:
                self.trims.remove(unit)
                self.home.pop(unit, None)
        for unit in units:
            self.home[unit] = "data"
        self.data[number] = set(units)
