//! Error messages of device files, and the positions in them.

use super::*;

#[test]
fn point_to_the_place_in_the_file() {
    let text = "base = \"tiny\"\n\n[geometry]\nchanels = 4\n\tblocks = \"many\"\n[gc]\nvictim = { fifo = {} }\n";
    assert_eq!(
        error(from_toml(text, "mine.toml", &[])),
        "mine.toml:4:1: unknown key `geometry.chanels`, did you mean `channels`? `geometry` has channels, chips, \
             chips_per_package, dies, planes, blocks, pages, block_size, page_size, spare_size, mapping_unit, \
             logical_page, pages_per_program\n\
             4 | chanels = 4\n  | ^^^^^^^"
    );
    assert_eq!(
        error(from_toml(&text.replace("chanels", "channels"), "mine.toml", &[])),
        "mine.toml:5:11: `geometry.blocks`: invalid type: string \"many\", expected a whole number, 1 or more\n\
             5 | \tblocks = \"many\"\n  | \t         ^^^^^^"
    );
    assert_eq!(
        error(from_toml("base = \"tiny\"\n[geometry\n", "mine.toml", &[])),
        "mine.toml:2:10: unclosed table, expected `]`\n2 | [geometry\n  |          ^"
    );
    assert_eq!(
        error(from_toml("base = \"tiny\"\ngeometry.pages_per_program = 3\n", "mine.toml", &[])),
        "mine.toml:2:30: geometry.pages_per_program = 3: must divide geometry.pages = 64: a block consists of whole \
         programs\n\
             2 | geometry.pages_per_program = 3\n  |                              ^"
    );
}

#[test]
fn point_to_the_place_in_the_base() {
    let message = error(from_toml(
        "base = \"tiny\"\n[gc]\nsoft_threshold = 1\nhard_threshold = 1\n",
        "m.toml",
        &set(&["geometry.blocks=3"]),
    ));
    assert!(
        message.starts_with("--set geometry.blocks=3: gc.soft_threshold = 1: 1 of 3 blocks cannot be kept free")
            && message.contains("is set in m.toml:3:18"),
        "{message}"
    );
    let message = error(tiny(&["gc.soft_threshold=1", "geometry.blocks=2"]));
    assert!(message.starts_with("--set gc.soft_threshold=1: gc.soft_threshold = 1"), "{message}");
    let message = error(tiny(&["gc.hard_threshold=3"]));
    assert!(
        message.starts_with("--set gc.hard_threshold=3: gc.hard_threshold = 3: 3 blocks, must be at most"),
        "{message}"
    );
    let message = error(tiny(&["geometry.pages=63", "geometry.pages_per_program=1", "geometry.mapping_unit=8KiB"]));
    assert!(message.starts_with("--set geometry.mapping_unit=8KiB"), "{message}");
    let message = error(tiny(&["nand.cell=mlc", "geometry.blocks=4"]));
    assert!(message.starts_with("--set geometry.blocks=4: gc.soft_threshold = 2"), "{message}");
}

#[test]
fn name_the_new_key_of_a_renamed_one() {
    for (old, new) in [
        ("controller.slots=9", "controller.write_slots"),
        ("controller.firmware.cleaning=9", "controller.firmware.gc"),
        ("faults.places=[]", "faults.inject"),
        ("gc.trigger.lazy.stale=0.3", "gc.trigger.lazy.invalid"),
    ] {
        let error = error(tiny(&[old]));
        assert!(error.contains(&format!(", which is now `{new}`;")), "{old}: {error}");
    }
}

#[test]
fn name_the_new_value_of_an_option() {
    for (old, new) in [("multi_plane_read=wise", "true"), ("multi_plane_erase=off", "false")] {
        let error = error(tiny(&[&format!("nand.advanced.{old}")]));
        assert!(error.contains(&format!(", expected a boolean, which is now `{new}`\n")), "{old}: {error}");
    }
}

#[test]
fn mention_a_table_only_if_a_choice_has_options() {
    let error = error(tiny(&["nand.advanced.multi_plane_program=true"]));
    assert!(error.contains("`nand.advanced.multi_plane_program`: one of off, wise, blind\n"), "{error}");
}

#[test]
fn say_what_is_allowed_at_a_path() {
    for (over, expected) in [
        (
            "gc.victim=fifoo",
            "`gc.victim`: unknown name `fifoo`, did you mean `fifo`? one of greedy, fifo, random, d-choices, cost-benefit",
        ),
        ("gc.victim=zzzzzz", "`gc.victim`: unknown name `zzzzzz`: one of greedy, fifo"),
        ("gc.victim.lifo.x=1", "`gc.victim`: unknown name `lifo`, did you mean `fifo`?"),
        ("gc.victim.fifo.x=1", "unknown key `gc.victim.fifo.x`; `gc.victim.fifo` has no keys"),
        (
            "gc.victim.d-choices.e=1",
            "unknown key `gc.victim.d-choices.e`, did you mean `d`? `gc.victim.d-choices` has d",
        ),
        (
            "gc.victim=3",
            "`gc.victim`: one of greedy, fifo, random, d-choices, cost-benefit, external, or a table of one of them",
        ),
        ("gc.victim={ fifo = {}, greedy = {} }", "`gc.victim`: fifo and greedy: name exactly one of greedy, fifo"),
        ("gc.victim={}", "`gc.victim`: an empty table: name exactly one of greedy, fifo"),
        (
            "mapping.block_summary.none=1",
            "`mapping.block_summary`: `none` has no options: write mapping.block_summary = \"none\"",
        ),
        ("channels=8", "unknown key `channels`, did you mean `geometry.channels`? a device has name"),
        ("victim=fifo", "unknown key `victim`, did you mean `gc.victim`?"),
        (
            "gc=3",
            "`gc` is a table, with the keys soft_threshold, hard_threshold, trigger, victim, wear, scope, destination, \
             frontiers, pace",
        ),
        (
            "gc.scope=pool",
            "gc.scope = pool: only dynamic allocation has pools; set allocation to \"dynamic\", or this to \"plane\"",
        ),
        ("geometry.channels.x=3", "`geometry.channels` is one value, not a table"),
        (
            "geometry.channels=-1",
            "`geometry.channels`: invalid value: integer `-1`, expected a whole number, 1 or more",
        ),
        ("capacity=0.2", "`capacity`: write capacity.spare = ... or capacity.logical = ..."),
        ("capacity=spare", "`capacity`: `spare` needs a value: write capacity.spare = ..."),
        (
            "nand.read=25",
            "`nand.read`: invalid type: integer `25`, expected a value with its unit, like \"25us\", or a list of them",
        ),
        (
            "nand.read=25xs",
            "`nand.read`: `25xs` is not a time: expected a number with one of ps, ns, us, ms, s, like \"25us\"",
        ),
        ("nand.read=[\"25us\", \"1xs\"]", "`nand.read`: `1xs` is not a time"),
        (
            "allocation={ dynamic = { scope = { channels = 3 } } }",
            "allocation.dynamic: invalid `scope` { channels = 3 }: a pool must have a divisor of the 2 channels, such as 2",
        ),
        (
            "allocation.static.order=channel-dye",
            "`allocation.static.order`: invalid order `channel-dye`: unknown level `dye`, did you mean `die`?",
        ),
        (
            "nand.concurrency=dye",
            "`nand.concurrency`: unknown name `dye`, did you mean `die`? one of chip, command, die, plane",
        ),
    ] {
        let message = error(tiny(&[over]));
        let (_, said) = message.split_once(": ").unwrap();
        assert!(message.starts_with(&format!("--set {over}: ")), "{message}");
        assert!(said.starts_with(expected), "{over} gave\n{said}\ninstead of\n{expected}");
        assert!(message.contains('^'), "{message}");
    }
}

#[test]
fn say_how_an_override_is_written() {
    for (over, expected) in [
        ("gc.victim", "no `=`"),
        ("gc.victim=", "no value after the `=`"),
        ("=fifo", "no path before the `=`"),
        ("gc.victim=fifo\ngc.x=1", "more than one line"),
    ] {
        let message = error(tiny(&[over]));
        assert!(message.contains(expected) && message.ends_with("write it like gc.victim=fifo"), "{message}");
    }
    for over in ["gc victim=fifo", "gc.[=fifo", "gc.victim=[", "gc.victim={ fifo", "a = 1 = 2", "gc..victim=fifo"] {
        assert!(matches!(tiny(&[over]), Err(ConfigError::Malformed(_))), "{over}");
    }
}

#[test]
fn find_all_missing_and_unknown_keys() {
    let error = from_toml("[geometry]\nchannels = 1\nzzz = 1\n[bus]\nqqq = 1\n", "x.toml", &[]).unwrap_err();
    let paths: Vec<&str> = error.problems().iter().map(|problem| problem.path.as_str()).collect();
    for path in ["geometry.zzz", "geometry.chips", "geometry.page_size", "bus.qqq", "bus.protocol", "nand"] {
        assert!(paths.contains(&path), "{path} is not in {paths:?}");
    }
    assert!(error.to_string().contains("missing key `geometry.page_size`: Data bytes of a flash page"), "{error}");
}

#[test]
fn distinguish_a_missing_file_from_an_unknown_name() {
    let message = error(load("tinny", &[]));
    assert!(message.starts_with("no built-in device is called `tinny`, did you mean `tiny`?\n"), "{message}");
    assert!(message.contains("hu2011") && message.contains("./tinny.toml"), "{message}");
    let message = error(load("no/such/file", &[]));
    assert!(message.starts_with("cannot read the device file no/such/file: "), "{message}");
    let message = error(load("./tiny.toml", &[]));
    assert!(message.ends_with("`tiny` is a built-in device: give its name alone"), "{message}");
    assert!(matches!(load("devices/", &[]), Err(ConfigError::Unreadable { .. })));
}

#[test]
fn refuse_wrong_bases() {
    let message = error(from_toml("base = \"tinny\"\n", "x.toml", &[]));
    assert!(
        message.starts_with("x.toml:1:8: `base`: no built-in device is called `tinny`, did you mean `tiny`?"),
        "{message}"
    );
    let message = error(from_toml("base = 3\n", "x.toml", &[]));
    assert!(message.starts_with("x.toml:1:8: `base` is the name of a built-in device"), "{message}");
    assert!(error(tiny(&["base=hu2011"])).contains("unknown key `base`"));
}
