//! The reference of profiles, models and jobs in `docs/reference` must match the code. `FLOATGATE_BLESS=1` writes it
//! again.

use crate::common::page::{check, page};
use floatgate_workload::synthetic;
use floatgate_workload::synthetic::model::Model;
use floatgate_workload::trace::profile::Profile;

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
    generates a synthetic workload that resembles a trace. The generated requests are profiled like the trace\n\
    ([profile.md](profile.md)), and the moments of both are printed with a note on each poor fit: beyond 5 percentage\n\
    points for shares, and beyond 10 % for quantities (25 % for medians and variations of gaps, 50 % for dispersions).\n\
    At most a million requests are generated for the comparison. For longer traces, footprints and hot shares are\n\
    neither fitted nor compared.\n\n\
    `-o FILE.json` writes a model in the format below. `-o FILE.fio` writes a job in fio syntax\n\
    ([synthetic.md](synthetic.md)) and compares that job, which has whole percentages, independent gaps and no\n\
    sequential requests. Neither contains the behavior of the trace over long times, such as day and night.\n\n\
    `--moments` takes the values that papers publish for a trace: `read=23.2% read_size=2.25KiB write_size=3.75KiB\n\
    interarrival=8.19ms`. Further values are optional: `cv=` (of the gaps; default 1, a Poisson process), `footprint=`\n\
    (default: the whole device), `hot=` (share of the accesses to 20 % of the pages), `sequential=` and `requests=`\n\
    (default: a million). A mean size between two sectors is a mix of both. Workloads of the literature have names:\n\
    `financial1`, `financial2`, `websearch`, `exchange`, `msn`, `develop`, `radius`. Words may be added:\n\
    `--moments 'financial1 footprint=16GiB'`.\n\n\
    Sizes of regions, weights of zones and shares of sequential requests are fitted by trial. Mix, sizes and gaps are\n\
    those of the trace. Successive gaps are a Markov chain over octaves, so short gaps are clustered as in the trace.\n\
    Pages have other positions than in the trace: first those that are both read and written, then those that are only\n\
    read, then those that are only written. The same model, seed and file name give the same requests on every machine.\n\
    The JSON schema is [model.schema.json](model.schema.json). A type with `?` may be null.\n\n";

const PROFILE: &str = "# Profiles of traces\n\n\
    `floatgate trace info FILE... --json` prints this, or a list for several files. The JSON schema is\n\
    [profile.schema.json](profile.schema.json). [traces.md](traces.md) describes how traces are read.\n\
    A type with `?` may be null.\n\n\
    A trace is read once, and memory does not grow with the number of requests. Pages are counted individually while\n\
    those touched are in at most 524288 regions of 256 KiB (128 GiB if used densely). Beyond that, regions are sampled\n\
    by a hash of their address, as C. A. Waldspurger et al. do for blocks in \"Efficient MRC construction with SHARDS\",\n\
    FAST 2015. `footprint.sampled` is the share of sampled regions, and `footprint.relative_error` the error of the\n\
    page counts. Hot shares and overwrites are those of the sample.\n\n";
