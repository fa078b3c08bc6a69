//! Certificates for tests, by openssl: a CA in a directory of its own, and what it issues.

use crate::prelude::*;
use quorumlock::Tls;

/// A CA, and the directory of all it issues, which goes with it.
pub(crate) struct Authority {
    directory: PathBuf,
}

/// What is particular about a certificate.
#[derive(Clone, Copy, Default)]
pub(crate) struct Particulars {
    /// `subjectAltName`; otherwise the address 127.0.0.1.
    pub(crate) names: Option<&'static str>,
    /// Begin and end of its validity, as `openssl ca` takes them; otherwise from now on for a year.
    pub(crate) validity: Option<(&'static str, &'static str)>,
    /// Whether it is one of X.509 version 1.
    pub(crate) is_version_1: bool,
}

impl Particulars {
    pub(crate) const EXPIRED: Particulars =
        Particulars::valid("20200101000000Z", "20200201000000Z");
    pub(crate) const NOT_YET_VALID: Particulars =
        Particulars::valid("20600101000000Z", "20610101000000Z");
    pub(crate) const VERSION_1: Particulars = Particulars {
        is_version_1: true,
        ..Particulars::PLAIN
    };
    const PLAIN: Particulars = Particulars {
        names: None,
        validity: None,
        is_version_1: false,
    };

    pub(crate) const fn named(names: &'static str) -> Particulars {
        Particulars {
            names: Some(names),
            ..Particulars::PLAIN
        }
    }

    const fn valid(begin: &'static str, end: &'static str) -> Particulars {
        Particulars {
            validity: Some((begin, end)),
            ..Particulars::PLAIN
        }
    }
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let authority = Authority {
            directory: new_folder("ca"),
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        authority.openssl(&format!(
            "req -x509 {key} -days 3650 -subj /CN=hunter2-ca -keyout ca.key -out ca.crt"
        ));
        authority
    }

    /// A CA that has issued plain certificates with these names.
    pub(crate) fn with(names: &[&str]) -> Authority {
        let authority = Authority::new();
        for name in names {
            authority.issue(name, Particulars::default());
        }
        authority
    }

    /// Issues a certificate: `name.crt`, with its key in `name.key`. What it contains about itself
    /// must never show.
    pub(crate) fn issue(&self, name: &str, particulars: Particulars) -> &Authority {
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        self.openssl(&format!(
            "req {key} -subj /CN=hunter2-{name} -keyout {name}.key -out {name}.csr"
        ));
        let names = particulars.names.unwrap_or("IP:127.0.0.1");
        fs::write(
            self.path(&format!("{name}.ext")),
            format!("subjectAltName={names}\n"),
        )
        .unwrap();
        let issuer = "-CA ca.crt -CAkey ca.key -CAcreateserial";
        match particulars.validity {
            Some((begin, end)) => {
                let directory = self.directory.display();
                let settings = format!(
                    "[ca]\ndefault_ca=this\n[this]\ndatabase={directory}/index\nserial={directory}/serial\n\
                     new_certs_dir={directory}\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n"
                );
                fs::write(self.path("ca.conf"), settings).unwrap();
                fs::write(self.path("index"), "").unwrap();
                fs::write(self.path("serial"), "1000\n").unwrap();
                self.openssl(&format!(
                    "ca -batch -config ca.conf -cert ca.crt -keyfile ca.key -startdate {begin} -enddate {end} \
                     -extfile {name}.ext -in {name}.csr -out {name}.crt -notext"
                ));
            }
            None if particulars.is_version_1 => {
                self.openssl(&format!(
                    "x509 -req -in {name}.csr {issuer} -days 365 -out {name}.crt"
                ));
            }
            None => {
                let extensions = format!("-extfile {name}.ext");
                self.openssl(&format!(
                    "x509 -req -in {name}.csr {issuer} -days 365 {extensions} -out {name}.crt"
                ));
            }
        }
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The client's side: this CA as the root.
    pub(crate) fn roots(&self) -> Tls {
        Tls::new().roots_file(self.path("ca.crt"))
    }

    /// The same with the certificate of a client.
    pub(crate) fn identity(&self, tls: Tls) -> Tls {
        tls.identity_pem(self.read("client.crt"), self.read("client.key"))
    }

    /// A server with this certificate, which lets clients in without one.
    pub(crate) fn server(&self, name: &str) -> Server {
        self.plan(name)
            .arguments(&["--tls-auth-clients", "no"])
            .start()
            .unwrap()
    }

    /// A server with this certificate.
    pub(crate) fn plan(&self, name: &str) -> Plan {
        let file = |name: String| self.path(&name).display().to_string();
        let certificate = file(format!("{name}.crt"));
        let key = file(format!("{name}.key"));
        let ca = file("ca.crt".into());
        Server::plan().tls().arguments(&[
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &ca,
        ])
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(&self.directory)
            .output()
            .expect("openssl is needed to issue certificates: `apt-get install openssl`");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments}: {errors}");
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
