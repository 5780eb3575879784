"""Log-block mappings as sets and lists, without flash, planes or time: an oracle for write amplification.

Units are written one at a time. Nothing here is taken from the simulator. Trimmed units stay in place and are listed,
and merges consult the list, as in Yoo et al. 2013.
"""


class Hybrid:
    """A device of `count` logical blocks of `pages` pages. `home` is the log block of a unit, or "data".

    `options` has the window of hot units, and the numbers of data blocks and of sequential log blocks over which units
    are spread. If these differ, sequential log blocks have consecutive units of several logical blocks. With the option
    `first_writes` "data", units are written to the data block while their page and all later ones are free.
    """

    def __init__(self, scheme, count, pages, logs, options):
        self.scheme, self.pages, self.limits, self.window = scheme, pages, logs, options.get("hot_window", 0)
        stripe = {"data": 1} | options.get("stripe", {})
        self.stripe = stripe["data"]
        self.runs = stripe.get("sequential", stripe["data"]) != stripe["data"]
        self.data = {number: set() for number in range(count + self.stripe)}
        # The first free page of each data block. Without first writes, no write finds a free page.
        self.is_first = options.get("first_writes", "data") == "data"
        self.free = dict.fromkeys(self.data, 0)
        self.logs = {kind: [] for kind in logs}  # Oldest first.
        self.home = {}
        self.trims = set()
        self.copies = self.clock = 0
        self.merges = {"switch": 0, "partial": 0, "full": 0}
        self.associativity = []
        self.last = {}

    def split(self, unit):
        group, rest = divmod(unit, self.pages * self.stripe)
        offset, part = divmod(rest, self.stripe)
        return group * self.stripe + part, offset

    def units_of(self, number):
        group, part = divmod(number, self.stripe)
        first = group * self.pages * self.stripe + part
        return range(first, first + self.pages * self.stripe, self.stripe)

    def is_in(self, unit, log):
        return self.home.get(unit) is log and unit not in self.trims

    def valid(self, log):
        return [unit for unit in dict.fromkeys(log["units"]) if self.is_in(unit, log)]

    def write(self, unit):
        number, offset = self.split(unit)
        if self.is_first and offset >= self.free[number]:
            self.free[number] = offset + 1
            self.data[number].add(unit)
            self.settle_write(unit, "data")
            return
        kind = self.kind_of(unit, number, offset)
        if kind == "sequential" and self.runs:
            log = self.log_for_run(unit)
        else:
            log = self.log_for(kind, number, offset)
            assert kind != "sequential" or offset == len(log["units"])
        log["units"].append(unit)
        log["next"] = unit + 1
        log["used"] = self.clock
        self.data[number].discard(unit)
        self.settle_write(unit, log)

    def settle_write(self, unit, home):
        self.trims.discard(unit)
        self.home[unit] = home
        self.last[unit] = self.clock
        self.clock += 1

    def trim(self, unit):
        if unit in self.home:
            self.trims.add(unit)

    def kind_of(self, unit, number, offset):
        if self.scheme == "bast":
            return "own"
        if self.runs:
            continues = any(log["next"] == unit for log in self.logs["sequential"])
        else:
            continues = any(log["owner"] == number and len(log["units"]) == offset for log in self.logs["sequential"])
        if continues or offset == 0:
            return "sequential"
        if self.scheme == "fast":
            return "random"
        return "hot" if self.clock - self.last.get(unit, -(10**9)) <= self.window else "cold"

    def log_for_run(self, unit):
        logs = self.logs["sequential"]
        # Of several, the one that was written last.
        before = sorted((log for log in logs if log["next"] == unit), key=lambda log: log["used"])
        if before and len(before[-1]["units"]) < self.pages:
            return before[-1]
        for log in before:
            log["next"] = None
        if len(logs) == self.limits["sequential"]:
            self.reclaim_shared("sequential", min(logs, key=lambda log: log["used"]))
        logs.append({"owner": None, "units": [], "used": self.clock})
        return logs[-1]

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
                # The oldest one. With LAST, fewer valid units come first.
                by_valid = min(logs, key=lambda log: len(self.valid(log)))
                self.reclaim_shared(kind, by_valid if self.scheme == "last" else logs[0])
        logs.append({"owner": number if owned else None, "units": [], "used": self.clock})
        return logs[-1]

    def reclaim_owned(self, kind, log):
        number, size = log["owner"], len(log["units"])
        in_order = [self.split(unit)[1] for unit in log["units"]] == list(range(size))
        rest = {unit for unit in self.data[number] if unit not in self.trims}
        self.associativity.append(1)
        self.logs[kind].remove(log)
        if not in_order or any(self.split(unit)[1] < size for unit in rest):
            if self.valid(log):
                self.full_merge(number)
            return
        self.merges["partial" if rest else "switch"] += 1
        self.copies += len(rest)
        self.settle(number, rest | {unit for unit in log["units"] if self.is_in(unit, log)}, size)

    def reclaim_shared(self, kind, log):
        numbers = sorted({self.split(unit)[0] for unit in self.valid(log)})
        self.associativity.append(len(numbers))
        self.logs[kind].remove(log)
        for number in numbers:
            self.full_merge(number)

    def full_merge(self, number):
        units = {unit for unit in self.units_of(number) if unit in self.home}
        units -= self.trims
        self.copies += len(units)
        self.merges["full"] += 1
        self.settle(number, units)

    def settle(self, number, units, written=0):
        """Make `units` the contents of the data block, of which the first `written` pages have been programmed.

        Other listed units of the logical block are forgotten.
        """
        for unit in self.units_of(number):
            if unit in self.trims:
                self.trims.remove(unit)
                self.home.pop(unit, None)
        for unit in units:
            self.home[unit] = "data"
        self.data[number] = set(units)
        self.free[number] = max([written, *(self.split(unit)[1] + 1 for unit in units)])
