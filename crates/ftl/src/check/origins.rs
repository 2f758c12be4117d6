//! Pages that went astray, and pages of an earlier life of their block: what lies there, in words.

use crate::check::{CheckReport, Harm};
use kvssd_flash::codec::PageIdentity;
use kvssd_flash::{Flash, Geometry, PageAddress};

/// Of so many unreadable pages it is asked what lies there.
const ORIGINS_MAX: u64 = 64;

/// Says of a page that cannot be read which one lies there, if it is a whole one. No cut leaves such a page.
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
