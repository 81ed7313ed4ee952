//! Numbers in the messages of SOCKS5.

/// First byte of every SOCKS5 message.
pub(super) const SOCKS_VERSION: u8 = 5;
pub(super) const NO_LOGIN_METHOD: u8 = 0;
pub(super) const PASSWORD_METHOD: u8 = 2;
pub(super) const NO_ACCEPTABLE_METHOD: u8 = 0xff;
pub(super) const CONNECT_COMMAND: u8 = 1;
pub(super) const IPV4_ADDRESS: u8 = 1;
pub(super) const NAME_ADDRESS: u8 = 3;
pub(super) const IPV6_ADDRESS: u8 = 4;
