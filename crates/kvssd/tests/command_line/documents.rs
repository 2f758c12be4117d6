//! What the README shows works as it stands, from a copy of the repository's examples on.

use crate::desk::Desk;
use crate::serve::Service;
use std::env::{join_paths, split_paths, var_os};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Lines that do not end by themselves, want another program or service, or take minutes: `serve` and `matrix` have tests of their own.
const OTHERS: [&str; 3] = ["kvssd serve", "kvssd matrix", "nvme+tcp://"];

#[test]
fn the_urls_of_the_documents_reach_a_drive_that_is_served_as_they_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    let service = Service::start(&desk, "");
    const SHOWN: &str = "nvme+tcp://127.0.0.1:4420";
    for file in
        ["README.md", "docs/C.md", "docs/PYTHON.md", "crates/capi/include/kvs_api.h", "crates/py/python/kvssd/store.py"]
    {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let behind: Vec<&str> = text.split(SHOWN).skip(1).collect();
        assert!(!behind.is_empty(), "{file} shows a URL");
        for rest in behind {
            let end = rest.find(|sign: char| sign.is_whitespace() || "\"'`)".contains(sign)).unwrap_or(rest.len());
            desk.prints(&format!("list nvme+tcp://{}{}", service.address, &rest[..end]));
        }
    }
    assert_eq!(service.end("-TERM"), Some(0));
}

mod campaigns {
    use super::*;

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn the_lines_of_the_readme_work_one_after_the_other() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let desk = Desk::new();
        fs::create_dir(desk.path("examples")).unwrap();
        for example in ["requests.csv", "kvbench.ini"] {
            fs::copy(root.join("examples").join(example), desk.path("examples").join(example)).unwrap();
        }
        let program = Path::new(env!("CARGO_BIN_EXE_kvssd")).parent().unwrap().to_owned();
        let path = var_os("PATH").unwrap_or_default();
        let path = join_paths(std::iter::once(program).chain(split_paths(&path))).unwrap();
        let readme = fs::read_to_string(root.join("README.md")).unwrap();
        let (_, experiment) = readme.split_once("```toml\n# experiment.toml\n").expect("it shows a sweep");
        desk.put("experiment.toml", experiment.split("```").next().unwrap());
        let blocks = readme.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
        let lines: Vec<&str> = blocks
            .flat_map(str::lines)
            .filter(|line| line.contains("kvssd ") && !line.starts_with("cargo "))
            .filter(|line| OTHERS.iter().all(|other| !line.contains(other)))
            .collect();
        assert!(lines.len() >= 14, "{lines:?}");
        for line in lines {
            let output = Command::new("sh").arg("-c").arg(line).current_dir(desk.path(".")).env("PATH", &path).output();
            let output = output.expect("there is a shell");
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        }
        for made in ["runs.json", "run.json.gz", "report.html", "results/index.json", "drive.kv", "pairs.jsonl.gz"] {
            assert!(desk.path(made).exists(), "{made}");
        }
    }
}
