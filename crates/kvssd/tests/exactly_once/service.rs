//! `kvssd serve` as a process that is killed and started again on its image.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A service that runs.
pub struct Service {
    child: Child,
    pub address: SocketAddr,
    metrics: String,
}

impl Service {
    /// Makes the image `drive.kv` in a folder.
    pub fn create(folder: &Path, arguments: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvssd"));
        command.current_dir(folder).args(["create", "drive.kv"]).args(arguments.split_whitespace());
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "{output:?}");
    }

    /// Looks at everything in the image.
    pub fn check(folder: &Path) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvssd"));
        let output = command.current_dir(folder).args(["check", "drive.kv"]).output().expect("the program starts");
        assert!(output.status.success(), "{output:?}");
    }

    /// Has the services in a folder ask for TLS; gives what URLs have more then.
    pub fn secure(folder: &Path) -> String {
        let key = folder.join("host.key");
        std::fs::write(&key, "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:").unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let rights = "[hosts.\"nqn.a\"]\nread_write = \"all\"\ntls_key_file = \"host.key\"\n";
        std::fs::write(folder.join("target.toml"), rights).unwrap();
        format!("&host=nqn.a&tls-key-file={}", key.display())
    }

    pub fn start(folder: &Path) -> Service {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvssd"));
        command.current_dir(folder).args(["serve", "drive.kv", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
        if folder.join("target.toml").exists() {
            command.args(["--config", "target.toml"]);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
        let (mut message, mut metrics) = (String::new(), String::new());
        lines.read_line(&mut message).unwrap();
        if !message.contains("http://") {
            lines.read_line(&mut metrics).unwrap();
        }
        let address = message.split(" on ").nth(1).and_then(|rest| rest.split(' ').next());
        let address = address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("{message:?}"));
        let metrics = format!("{message}{metrics}");
        let metrics = metrics.split("http://").nth(1).expect("an address of the metrics").trim().to_owned();
        Service { child, address, metrics }
    }

    /// Changes that came again and had been made, since it was started.
    pub fn recognized(&self) -> u64 {
        let (host, path) = self.metrics.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let found = page.lines().find_map(|line| line.strip_prefix("kvssd_recognized_total "));
        found.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("{page}"))
    }

    /// kill -9. It may be gone already.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}
