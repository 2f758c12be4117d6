//! The whole command line of kvssd, with a design of one's own.

fn main() -> std::process::ExitCode {
    kvssd_cli::main_with([own_design::design()])
}
