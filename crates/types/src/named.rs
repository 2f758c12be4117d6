//! Choices that people make by name: one declaration gives the variants, their names, and both ways between them.

use thiserror::Error;

/// A name that stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown {what} \"{name}\": choose one of {choices}")]
pub struct UnknownName {
    /// What was to be named.
    pub what: &'static str,
    /// The name that was given.
    pub name: String,
    /// The names that there are.
    pub choices: String,
}

/// An enum whose variants have names: `ALL`, `name`, `Display`, and `FromStr`, which refuses with [`UnknownName`].
///
/// ```
/// kvssd_types::named_enum! {
///     /// How long it is to take.
///     pub enum Pace: "pace" {
///         /// As long as it takes.
///         Closed = "closed",
///         /// As long as it took.
///         Trace = "trace",
///     }
/// }
/// assert_eq!((Pace::ALL.len(), Pace::Closed.to_string().parse()), (2, Ok(Pace::Closed)));
/// let refused = "fast".parse::<Pace>().unwrap_err().to_string();
/// assert_eq!(refused, "unknown pace \"fast\": choose one of closed, trace");
/// ```
#[macro_export]
macro_rules! named_enum {
    ($(#[$about:meta])* $visibility:vis enum $choice:ident: $what:literal {
        $($(#[$of_variant:meta])* $variant:ident = $name:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $choice {
            $($(#[$of_variant])* $variant,)+
        }

        impl $choice {
            /// All of them.
            pub const ALL: [$choice; [$($name),+].len()] = [$($choice::$variant),+];

            /// The name that people use.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $($choice::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $choice {
            type Err = $crate::UnknownName;

            fn from_str(name: &str) -> Result<Self, $crate::UnknownName> {
                $choice::ALL.into_iter().find(|choice| choice.name() == name).ok_or_else(|| $crate::UnknownName {
                    what: $what,
                    name: name.to_owned(),
                    choices: $choice::ALL.map($choice::name).join(", "),
                })
            }
        }
    };
}
