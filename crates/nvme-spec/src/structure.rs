//! Data structures that are their bytes: what those of Identify and log pages have in common.

/// Gives structures `zeroed` and `from_data`; `$view` takes its bytes for one, where they can be.
macro_rules! structures {
    (|$bytes:ident| $view:expr; $($name:ident),+ $(,)?) => {$(
        impl $name {
            /// A structure of zeros.
            #[must_use]
            pub fn zeroed() -> Self {
                zerocopy::FromZeros::new_zeroed()
            }

            /// Views `bytes` as this structure; `None` if they are not as many as they must be.
            #[must_use]
            pub fn from_data($bytes: &[u8]) -> Option<&Self> {
                $view
            }
        }
    )+};
}

/// Sees at compile time that a structure has so many bytes, and fields where the specification has them.
macro_rules! layout {
    ($name:ident: $length:expr $(, $field:ident at $offset:expr)* $(,)?) => {
        const _: () = assert!(size_of::<$name>() == $length);
        $(const _: () = assert!(core::mem::offset_of!($name, $field) == $offset);)*
    };
}

pub(crate) use {layout, structures};
