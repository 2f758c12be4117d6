//! Images are made and opened: of one part, or of several in one file.
//!
//! ```text
//!   one part      Disk ------------------------- ImageBacking             as images always were
//!   several       Disk (the lock) -- split --+-- Disk -- ImageBacking     part 0
//!                                            +-- Disk -- ImageBacking     part 1: no lock among them, but the first failure is that of all
//! ```

use super::disk::Disk;
use super::error::{ImageError, ImageFault, damaged};
use super::files::Files;
use super::layout::{FIXED_BYTES, Layout, MAGIC, MAGIC_UNFINISHED, Part, truncated};
use super::staging::Staging;
use super::system_files::SystemFiles;
use super::table::Table;
use super::{CreateOptions, ImageBacking, OpenOptions};
use crate::Geometry;
use std::path::Path;
use std::sync::Arc;

impl ImageBacking {
    /// A new image of an erased drive. `description` is for the program that opens it. Until its first commit it is not finished, and
    /// nobody can open it: its creator may write to it first.
    ///
    /// # Errors
    /// [`ImageError`] when there is such a file, the numbers are impossible, or there is no room. Nothing is left
    /// behind then.
    pub fn create(
        path: impl AsRef<Path>,
        geometry: Geometry,
        description: &str,
        options: CreateOptions,
    ) -> Result<ImageBacking, ImageError> {
        let files: Arc<dyn Files> = Arc::new(SystemFiles);
        ImageBacking::create_in(&files, path.as_ref(), geometry, description, options)
    }

    /// As [`ImageBacking::create`], among those files.
    pub fn create_in(
        files: &Arc<dyn Files>,
        path: &Path,
        geometry: Geometry,
        description: &str,
        options: CreateOptions,
    ) -> Result<ImageBacking, ImageError> {
        ImageBacking::create_parts_in(files, path, geometry, description, 1, options).and_then(only)
    }

    /// Like [`ImageBacking::create_in`], with `parts` parts, at most 256. Each has the geometry and the staging bytes; they share the cache
    /// equally. The image is finished when all of them have been committed.
    ///
    /// # Errors
    /// As [`ImageBacking::create`].
    pub fn create_parts_in(
        files: &Arc<dyn Files>,
        path: &Path,
        geometry: Geometry,
        description: &str,
        parts: u32,
        options: CreateOptions,
    ) -> Result<Vec<ImageBacking>, ImageError> {
        let part = if parts == 1 { Part::ONLY } else { Part { number: 0, parts, image: files.image_number() } };
        let layout = Layout::new(geometry, description.len(), options.staging_bytes, part)
            .map_err(|why| ImageError { path: path.to_owned(), fault: ImageFault::Impossible { why } })?;
        let disk = Disk::create(files, path)?;
        fill_all(disk, &layout, description, options).inspect_err(|_| {
            // The file was made just now and is of no use. The disk's error was reported already.
            let _ = files.remove(path);
        })
    }

    /// Writes everything behind the header, and then the header, but not yet the mark of a finished image.
    fn fill(
        mut disk: Disk,
        layout: Layout,
        description: &str,
        options: CreateOptions,
    ) -> Result<ImageBacking, ImageError> {
        let table = Table::create(&mut disk, &layout)?;
        let staging = Staging::create(&mut disk, &layout)?;
        let header = layout.encode(description);
        disk.write(MAGIC.len() as u64, &header[MAGIC.len()..], "the header")?;
        if layout.part.number == 0 {
            disk.note_holder();
        }
        let (sync, cache_bytes) = (options.sync, share(options.cache_bytes, layout.part));
        let mut image = ImageBacking::new(disk, layout, description.to_owned(), (table, staging), sync, cache_bytes);
        (image.is_new, image.has_loose_bytes) = (true, true);
        Ok(image)
    }

    /// The image at `path`, and its description.
    ///
    /// # Errors
    /// [`ImageError`] if it does not exist, is no whole image of this format, has several parts, or is in use. Its bytes are not
    /// changed then.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<(ImageBacking, String), ImageError> {
        let files: Arc<dyn Files> = Arc::new(SystemFiles);
        ImageBacking::open_in(&files, path.as_ref(), options)
    }

    /// As [`ImageBacking::open`], among those files.
    pub fn open_in(
        files: &Arc<dyn Files>,
        path: &Path,
        options: OpenOptions,
    ) -> Result<(ImageBacking, String), ImageError> {
        let (disk, layout, description) = open_whole(files, path, options)?;
        if layout.part.parts > 1 {
            return Err(disk.error(ImageFault::Parts { parts: layout.part.parts }));
        }
        Ok((ImageBacking::open_only(disk, layout, &description, options)?, description))
    }

    /// As [`ImageBacking::open_in`], of all parts of the image in their order; the cache is theirs in equal shares.
    ///
    /// # Errors
    /// As [`ImageBacking::open`], and when a part is not where it should be.
    pub fn open_parts_in(
        files: &Arc<dyn Files>,
        path: &Path,
        options: OpenOptions,
    ) -> Result<(Vec<ImageBacking>, String), ImageError> {
        let (disk, layout, description) = open_whole(files, path, options)?;
        let images = if layout.part.parts == 1 {
            vec![ImageBacking::open_only(disk, layout, &description, options)?]
        } else {
            open_each(disk, &layout, &description, options)?
        };
        Ok((images, description))
    }

    fn open_only(
        mut disk: Disk,
        layout: Layout,
        description: &str,
        options: OpenOptions,
    ) -> Result<ImageBacking, ImageError> {
        let found = (Table::open(&disk, &layout)?, Staging::open(&disk, &layout)?);
        if !options.read_only {
            disk.note_holder();
        }
        if options.sync {
            // An earlier process may have written this without a sync before it was killed: what is shown now must not be lost.
            disk.sync_found()?;
        }
        Ok(ImageBacking::found(disk, layout, description, found, options))
    }

    fn found(
        disk: Disk,
        layout: Layout,
        description: &str,
        found: (Table, Staging),
        options: OpenOptions,
    ) -> ImageBacking {
        let (sync, cache_bytes) = (options.sync, share(options.cache_bytes, layout.part));
        let mut image = ImageBacking::new(disk, layout, description.to_owned(), found, sync, cache_bytes);
        // The file has what an earlier process wrote, but that may not be durable.
        (image.has_loose_bytes, image.has_loose_entries) = (!options.read_only, !options.read_only);
        image
    }
}

/// The image of one part.
fn only(mut images: Vec<ImageBacking>) -> Result<ImageBacking, ImageError> {
    Ok(images.pop().expect("an image has a part"))
}

/// The part's share of the cache, in bytes: at least 1 if any cache was asked for.
fn share(cache_bytes: u64, part: Part) -> u64 {
    (cache_bytes / u64::from(part.parts)).max(cache_bytes.min(1))
}

fn fill_all(
    mut disk: Disk,
    layout: &Layout,
    description: &str,
    options: CreateOptions,
) -> Result<Vec<ImageBacking>, ImageError> {
    disk.set_length(layout.whole_bytes(), options.preallocate)?;
    let parts = layout.part.parts;
    if parts == 1 {
        return Ok(vec![ImageBacking::fill(disk, *layout, description, options)?]);
    }
    let mut disks = disk.split(parts, layout.file_bytes)?;
    for part in &mut disks[1..] {
        part.write(0, &MAGIC_UNFINISHED, "the header")?;
    }
    let parts = (0..parts).zip(disks);
    parts.map(|(number, disk)| ImageBacking::fill(disk, layout.of_part(number), description, options)).collect()
}

/// The locked file, and what its header says.
fn open_whole(files: &Arc<dyn Files>, path: &Path, options: OpenOptions) -> Result<(Disk, Layout, String), ImageError> {
    let disk = Disk::open(files, path, options.read_only)?;
    let file_bytes = disk.length()?;
    let (layout, description) = read_header(&disk, file_bytes)?;
    let Part { number, parts, .. } = layout.part;
    if number != 0 {
        return Err(disk.error(damaged(format!("it begins with its part {number}, of {parts} from 0 on"))));
    }
    if file_bytes < layout.whole_bytes() {
        return Err(disk.error(truncated(file_bytes, layout.whole_bytes())));
    }
    Ok((disk, layout, description))
}

fn read_header(disk: &Disk, file_bytes: u64) -> Result<(Layout, String), ImageError> {
    let mut header = vec![0; file_bytes.min(FIXED_BYTES as u64) as usize];
    disk.read(0, &mut header, "the header")?;
    let header_bytes = Layout::header_length(&header, file_bytes).map_err(|fault| disk.error(fault))?;
    header.resize(header_bytes, 0);
    disk.read(0, &mut header, "the header")?;
    Layout::decode(&header).map_err(|fault| disk.error(fault))
}

fn open_each(
    disk: Disk,
    first: &Layout,
    description: &str,
    options: OpenOptions,
) -> Result<Vec<ImageBacking>, ImageError> {
    let mut disks = disk.split(first.part.parts, first.file_bytes)?;
    let mut found = Vec::with_capacity(disks.len());
    for (disk, number) in disks.iter().zip(0..) {
        let layout = first.of_part(number);
        let of_part = |error| name_part(error, number);
        check_header(disk, &layout, description)?;
        let table = Table::open(disk, &layout).map_err(of_part)?;
        found.push((layout, (table, Staging::open(disk, &layout).map_err(of_part)?)));
    }
    if !options.read_only {
        disks[0].note_holder();
    }
    if options.sync {
        disks[0].sync_found()?;
    }
    let parts = disks.into_iter().zip(found);
    Ok(parts.map(|(disk, (layout, found))| ImageBacking::found(disk, layout, description, found, options)).collect())
}

/// Checks that the right part lies there.
fn check_header(disk: &Disk, layout: &Layout, description: &str) -> Result<(), ImageError> {
    let Part { number, parts, image } = layout.part;
    let header = read_header(disk, layout.file_bytes).map_err(|error| match error.fault {
        ImageFault::Foreign | ImageFault::Version { .. } => {
            disk.error(damaged(format!("its part {number} does not begin as parts do")))
        }
        _ => name_part(error, number),
    })?;
    if header.0 == *layout && header.1 == description {
        return Ok(());
    }
    let there = header.0.part;
    let whose = if there.image == image && there.parts == parts { "its own" } else { "another image's" };
    Err(disk.error(damaged(format!("where its part {number} should be is {whose} part {}", there.number))))
}

/// Adds to the error which part is damaged.
fn name_part(error: ImageError, number: u32) -> ImageError {
    match error {
        ImageError { path, fault: ImageFault::Damaged { why } } => {
            ImageError { path, fault: damaged(format!("in its part {number}, {why}")) }
        }
        other => other,
    }
}
