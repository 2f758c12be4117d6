//! What a connection reads from and writes to: a socket in the clear, or TLS over it.
//!
//! One thread reads and one writes, at the same time. With TLS each holds the session only while it decrypts or encrypts,
//! never while it waits for the socket.

#[cfg(feature = "tls")]
mod secure;

use crate::failure::Failure;
use crate::time_left::Deadline;
use kvssd_nvme_auth::PresharedKey;
use kvssd_runtime::net::TcpStream;
use std::io::{self, Read, Write};

/// A connected socket.
pub(crate) struct Channel {
    socket: TcpStream,
    #[cfg(feature = "tls")]
    secure: Option<secure::Secure>,
}

impl Channel {
    /// Over `socket`; by TLS where there are keys.
    pub(crate) fn open(
        socket: TcpStream,
        keys: Option<Vec<PresharedKey>>,
        deadline: &Deadline,
    ) -> Result<Channel, Failure> {
        #[cfg(feature = "tls")]
        return Ok(Channel {
            secure: keys.map(|keys| secure::Secure::open(&socket, &keys, deadline)).transpose()?,
            socket,
        });
        #[cfg(not(feature = "tls"))]
        match (keys, deadline) {
            (None, _) => Ok(Channel { socket }),
            (Some(_), _) => Err(crate::Error::Refused("this program was built without TLS".to_owned()).into()),
        }
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads what is there, and does not wait.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(secure) = &self.secure {
            return secure.read(buffer, |incoming| self.socket.try_read(incoming));
        }
        self.socket.try_read(buffer)
    }

    /// Writes from the front of `bytes`. Returns whether there is nothing left to send, here or there.
    pub(crate) fn write(&self, bytes: &mut &[u8]) -> io::Result<bool> {
        #[cfg(feature = "tls")]
        if let Some(secure) = &self.secure {
            return secure.write(&self.socket, bytes);
        }
        let written = (&self.socket).write(bytes)?;
        *bytes = &bytes[written..];
        Ok(bytes.is_empty())
    }
}

impl Read for &Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(secure) = &self.secure {
            return secure.read(buffer, |incoming| (&self.socket).read(incoming));
        }
        (&self.socket).read(buffer)
    }
}
