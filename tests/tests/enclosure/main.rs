//! TBD

mod smoke;
