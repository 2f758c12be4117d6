//! Secrets as texts and in files.

use crate::{CONTROLLER_SECRET, HOST_SECRET, OTHER_SECRET, secret};
use kvssd_nvme_auth::{FileError, Secret, SecretError, read_secret};

#[test]
fn secrets_are_read_as_nvme_cli_writes_them() {
    for text in [
        HOST_SECRET,
        CONTROLLER_SECRET,
        OTHER_SECRET,
        // The example of the specification.
        "DHHC-1:01:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:\n",
    ] {
        assert!(Secret::parse(text).is_ok(), "{text}");
    }
    assert_eq!(secret(HOST_SECRET), secret(HOST_SECRET));
    assert_ne!(secret(HOST_SECRET), secret(OTHER_SECRET));
    assert!(!format!("{:?}", secret(HOST_SECRET)).contains("AAEC"));
}

#[test]
fn what_is_no_secret_is_said_and_not_shown() {
    let form = SecretError::Form;
    for (text, why) in [
        ("", form.clone()),
        ("a password", form.clone()),
        ("DHHC-1:01", form.clone()),
        ("DHHC-1:01:not base64:", form.clone()),
        (&HOST_SECRET[..HOST_SECRET.len() - 1], form),
        (&HOST_SECRET.replace(":01:", ":04:"), SecretError::Hash("04".to_owned())),
        (&HOST_SECRET.replace("AAEC", "AAED"), SecretError::Checksum),
        ("DHHC-1:00:AAAA:", SecretError::Length(0)),
    ] {
        let error = Secret::parse(text).unwrap_err();
        assert_eq!(error, why, "{text}");
        assert!(!error.to_string().contains("AwQF") && !error.to_string().contains('\n'));
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, HOST_SECRET).unwrap();
    for (mode, is_kept) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let wanted = if is_kept { Ok(secret(HOST_SECRET)) } else { Err(SecretError::File(FileError::Exposed)) };
        assert_eq!(read_secret(&path), wanted, "{mode:o}");
    }
    let missing = read_secret(&folder.path().join("nothing"));
    assert!(matches!(missing, Err(SecretError::File(FileError::Unreadable(_)))));
}

/// Who opens a pipe that nobody writes to waits for ever.
#[cfg(unix)]
#[test]
fn a_pipe_is_no_file_of_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    assert!(std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap().success());
    let refused = read_secret(&path).unwrap_err().to_string();
    assert!(refused.contains("no regular file"), "{refused}");
}
