//! Where the credentials of nodes come from whose URLs contain none.

use crate::engine::credentials::Provider;
use crate::fault::credentials_error::CredentialsError;
use crate::protocol::credentials::{Credentials, LONGEST};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often a password file is read while a client uses it.
const READ_AFTER: Duration = Duration::from_secs(1);

/// A file or a provider.
#[derive(Clone)]
pub(super) enum Login {
    File(PathBuf),
    Provider(Provider),
}

impl Login {
    /// What returns the credentials of each node.
    ///
    /// # Errors
    /// The file cannot be read by now.
    pub(super) fn provider(&self) -> Result<Provider, String> {
        let path = match self {
            Login::Provider(provider) => return Ok(Arc::clone(provider)),
            Login::File(path) => path.clone(),
        };
        let refused = |error| format!("password_file: {}: {error}", path.display());
        // A pipe can be read once, and each node reads.
        if fs::metadata(&path).is_ok_and(|data| !data.is_file() && !data.is_dir()) {
            return Err(refused("is no regular file".to_owned()));
        }
        read(&path).map_err(|error| refused(error.to_string()))?;
        Ok(Arc::new(move |_: &str| Ok(read(&path)?)))
    }
}

/// The credentials in a file: a password, without the end of its line.
fn read(path: &Path) -> Result<Credentials, CredentialsError> {
    let unreadable = |error: std::io::Error| CredentialsError::Unreadable(error.kind());
    let mut text = Vec::new();
    let longest = LONGEST as u64 + 3;
    File::open(path)
        .and_then(|file| file.take(longest).read_to_end(&mut text))
        .map_err(unreadable)?;
    let text = String::from_utf8(text).map_err(|_| CredentialsError::NotUtf8)?;
    Credentials::of_line(&text)
        .refresh_after(READ_AFTER)
        .checked()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_password_and_perhaps_the_end_of_its_line() {
        let directory =
            std::env::temp_dir().join(format!("quorumlock-login-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("password");
        let in_file = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            read(&path).map(|credentials| credentials.password().to_owned())
        };
        for (bytes, expected) in [
            (b"hunter2".as_slice(), "hunter2"),
            (b"hunter2\n", "hunter2"),
            (b"hunter2\r\n", "hunter2"),
            (b" hunter2 \n\n", " hunter2 \n"),
        ] {
            assert_eq!(in_file(bytes), Ok(expected.to_owned()));
        }
        for (bytes, error) in [
            (Vec::new(), CredentialsError::Empty),
            (b"\r\n".to_vec(), CredentialsError::Empty),
            (b"hunter\xff".to_vec(), CredentialsError::NotUtf8),
            (vec![b'x'; 1 << 20], CredentialsError::TooLong),
        ] {
            assert_eq!(in_file(&bytes), Err(error));
        }
        assert_eq!(
            in_file(&[b'x'; LONGEST]).map(|password| password.len()),
            Ok(LONGEST)
        );
        let kind = std::io::ErrorKind::NotFound;
        let absent = directory.join("absent");
        assert_eq!(read(&absent), Err(CredentialsError::Unreadable(kind)));
        assert!(read(&directory).is_err());
        fs::remove_dir_all(&directory).unwrap();
    }
}
