//! Names what lies in an unreadable page: a page that was written to another address, or one of an earlier life of its block.

use crate::check::{CheckReport, Harm};
use kvssd_flash::codec::PageIdentity;
use kvssd_flash::{Flash, Geometry, PageAddress};

/// The most unreadable pages whose content is looked for.
const ORIGINS_MAX: u64 = 64;

/// Reports which page's content lies at an unreadable `page`, if it is a whole page. A power cut never leaves one there.
pub(super) fn name_origin(flash: &mut Flash, geometry: &Geometry, page: PageAddress, report: &mut CheckReport) {
    // Each is a look at all pages of the drive.
    if report.pages_unreadable > ORIGINS_MAX {
        return;
    }
    let Some(PageIdentity { page: origin, .. }) = flash.backing_mut().origin(page) else { return };
    let what = match origin == page {
        true => "it is of an earlier life of its block: what was written since is lost".to_owned(),
        false => format!("what lies there was written to page {}", origin.0),
    };
    report.find(Harm::Harmless, format!("superblock {}, page {}", geometry.superblock_of(page).0, page.0), what);
}
