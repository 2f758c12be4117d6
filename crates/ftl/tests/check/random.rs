//! Random damage.
