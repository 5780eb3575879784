//! The reference of profiles, models and jobs in `docs/reference` must match the code. `FLOATGATE_BLESS=1` writes it
//! again.

#[path = "common/page.rs"]
mod page;

use floatgate_workload::synthetic;
use floatgate_workload::synthetic::model::Model;
use floatgate_workload::trace::profile::Profile;
use page::{check, page};

#[test]
fn the_schema_of_profiles_is_up_to_date() {
    let schema = serde_json::to_string_pretty(&Profile::json_schema()).unwrap() + "\n";
    check("profile.schema.json", &schema);
}

#[test]
fn the_page_on_profiles_is_up_to_date() {
    check("profile.md", &page(PROFILE, &Profile::json_schema()));
}

#[test]
fn the_schema_of_models_is_up_to_date() {
    let schema = serde_json::to_string_pretty(&Model::json_schema()).unwrap() + "\n";
    check("model.schema.json", &schema);
}

#[test]
fn the_page_on_models_is_up_to_date() {
    check("model.md", &page(MODEL, &Model::json_schema()));
}

#[test]
fn the_page_on_jobs_is_up_to_date() {
    check("synthetic.md", &synthetic::reference_page());
}

const MODEL: &str = "# Workloads like a trace\n\n\
    \x20   floatgate trace synth FILE [-o FILE.json|FILE.fio] [--requests N] [--scale-rate X] [--scale-footprint X]\n\
    \x20   floatgate trace synth --moments MOMENTS [-o ...]\n\
    \x20   floatgate run DEVICE FILE.json\n\n\
    makes a synthetic workload that is like a trace, and prints its moments beside those of the trace: what is made up\n\
    is profiled as the trace was ([profile.md](profile.md)), and what fits badly is said. Shares are off by points,\n\
    quantities in percent; badly is more than 5 points or 10 % (25 % for medians and variations of gaps, 50 % for\n\
    dispersions). At most a million requests are made up for that; of longer traces, footprints and hot shares\n\
    are neither found by trial nor compared.\n\n\
    `-o FILE.json` writes a model, the form of which is below. `-o FILE.fio` writes a job in fio's words\n\
    ([synthetic.md](synthetic.md)) and compares that one: it has whole percentages, independent gaps, and nothing\n\
    sequential. Neither holds what the trace does over long times, such as by day and by night: the dispersion in long\n\
    windows shows how much that is.\n\n\
    `--moments` takes what papers print of a trace: `read=23.2% read_size=2.25KiB write_size=3.75KiB\n\
    interarrival=8.19ms`, and where they are known `cv=` (of the gaps: 1, a Poisson process, without it), `footprint=`\n\
    (the whole device without it), `hot=` (the share of the accesses that goes to 20 % of the pages), `sequential=` and\n\
    `requests=` (a million without it). Mean sizes between sectors are made of the two next to them. Workloads of the\n\
    literature have names: `financial1`, `financial2`, `websearch`, `exchange`, `msn`, `develop`, `radius`, and words\n\
    may be added: `--moments 'financial1 footprint=16GiB'`.\n\n\
    Sizes of regions, weights of zones and shares of sequential requests are found by trial; mix, sizes and gaps are\n\
    those of the trace. Gaps follow one another as a Markov chain over octaves, so that short ones come together as\n\
    they did. Pages that are both read and written come first, then those only read, then those only written; where\n\
    the trace had them is lost. The same model, seed and name of its file make the same requests on every machine.\n\
    The JSON schema is [model.schema.json](model.schema.json).\n\n";

const PROFILE: &str = "# Profiles of traces\n\n\
    `floatgate trace info FILE... --json` prints this, as a list where there are several files. The JSON schema is\n\
    [profile.schema.json](profile.schema.json). How a trace is read: [traces.md](traces.md).\n\n\
    A trace is read once, and memory does not grow with its requests. Pages are counted one by one as long as those\n\
    touched lie in at most 524288 regions of 256 KiB (128 GiB where they are used densely). Beyond that, regions are\n\
    sampled by a hash of their address (as C. A. Waldspurger et al. do for blocks in \"Efficient MRC construction with\n\
    SHARDS\", FAST 2015): `footprint.sampled` says how many, `footprint.relative_error` how far the numbers of pages are\n\
    off, and hot shares and overwrites are those of the sample.\n\n";
