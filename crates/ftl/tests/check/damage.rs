//! Planted damage.
