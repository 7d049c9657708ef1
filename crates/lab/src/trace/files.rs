//! Which file is behind a descriptor: asked of `/proc` a moment after the call, and not believed where it may have changed meanwhile.

use super::class::{self, Class, Product};
use host::trace::process::{self, OpenFile};
use std::collections::{BTreeMap, BTreeSet};

/// Paths of a class that are kept.
const PATHS_MAX: usize = 12;
/// Files that are named by themselves, where no product is known.
const NAMED_MAX: usize = 24;

/// Files of one class that are open in one way.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) class: Option<Class>,
    /// Open flags; none where nobody could look.
    pub(super) flags: Option<u32>,
    /// Some of their paths.
    pub(super) paths: BTreeSet<String>,
}

/// A place's number.
pub(super) type PlaceId = usize;

/// Descriptors of all traced processes.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) places: Vec<Place>,
    /// By process and descriptor; none: no storage.
    known: BTreeMap<(u32, i32), Option<PlaceId>>,
    /// Paths that the source told.
    named: BTreeMap<(u32, i32), String>,
    /// Flags of opens that were seen.
    opened: BTreeMap<(u32, i32), u32>,
    /// Closes that are still to come among the events at hand.
    closing: BTreeMap<(u32, i32), u32>,
    /// Registered files of rings, by process and the ring's descriptor.
    rings: BTreeMap<(u32, i32), Option<PlaceId>>,
}

impl Files {
    /// Among the events at hand the descriptor is closed: what `/proc` shows may be another file by now.
    pub(super) fn will_close(&mut self, process: u32, fd: i32) {
        *self.closing.entry((process, fd)).or_default() += 1;
    }

    /// Another batch of events.
    pub(super) fn new_batch(&mut self) {
        self.closing.clear();
        // A ring whose files could not be read, or that has none yet.
        self.rings.retain(|_, place| place.is_some());
    }

    pub(super) fn closed(&mut self, process: u32, fd: i32) {
        let key = (process, fd);
        if let Some(times) = self.closing.get_mut(&key) {
            *times = times.saturating_sub(1);
        }
        self.known.remove(&key);
        self.named.remove(&key);
        self.opened.remove(&key);
        self.rings.remove(&key);
    }

    pub(super) fn opened(&mut self, process: u32, fd: i32, flags: u32) {
        let key = (process, fd);
        self.known.remove(&key);
        self.opened.insert(key, flags);
    }

    /// A descriptor shows what another does.
    pub(super) fn duplicated(&mut self, process: u32, old: i32, new: i32) {
        let (old, new) = ((process, old), (process, new));
        self.known.remove(&new);
        match self.opened.get(&old).copied() {
            Some(flags) => self.opened.insert(new, flags),
            None => self.opened.remove(&new),
        };
    }

    pub(super) fn named(&mut self, process: u32, fd: i32, path: String) {
        if self.named.get(&(process, fd)) != Some(&path) {
            self.known.remove(&(process, fd));
            self.named.insert((process, fd), path);
        }
    }

    /// The place of a descriptor; none where it is no storage.
    pub(super) fn place(&mut self, product: Product, process: u32, fd: i32) -> Option<PlaceId> {
        let key = (process, fd);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let place = self.look(product, key);
        self.known.insert(key, place);
        place
    }

    fn look(&mut self, product: Product, key: (u32, i32)) -> Option<PlaceId> {
        let trusted = self.closing.get(&key).copied().unwrap_or(0) == 0;
        let shown = trusted.then(|| process::open_file(key.0, key.1)).flatten();
        let flags = shown.as_ref().map(|file| file.flags).or_else(|| self.opened.get(&key).copied());
        let path = self.named.get(&key).cloned().or_else(|| shown.map(|file| file.path));
        match path {
            Some(path) => {
                let class = class::of(product, &path)?;
                Some(self.add(class, flags, &path))
            }
            None => Some(self.add(Class::ShortLived, flags, "")),
        }
    }

    /// The place of the files that are registered with a ring: one class, or all of them together.
    pub(super) fn registered(&mut self, product: Product, process: u32, ring: i32) -> Option<PlaceId> {
        let key = (process, ring);
        if let Some(known) = self.rings.get(&key) {
            return *known;
        }
        let paths = process::registered_files(process, ring);
        let open = if paths.is_empty() { Vec::new() } else { process::open_files(process) };
        let place = self.together(product, &paths, &open);
        self.rings.insert(key, place);
        place
    }

    fn together(&mut self, product: Product, paths: &[String], open: &[OpenFile]) -> Option<PlaceId> {
        let classes: BTreeSet<Class> = paths.iter().filter_map(|path| class::of(product, path)).collect();
        let mut classes: Vec<Class> = classes.into_iter().collect();
        let class = if classes.len() == 1 { classes.pop()? } else { Class::Several(classes) };
        if class == Class::Several(Vec::new()) {
            return None;
        }
        // The same file may be open in several ways; the ring has one of them, and nobody can say which.
        let flags: BTreeSet<u32> =
            open.iter().filter(|file| paths.contains(&file.path)).map(|file| marks(file.flags)).collect();
        let flags = if flags.len() == 1 { flags.first().copied() } else { None };
        let mut place = None;
        for path in paths {
            place = Some(self.add(class.clone(), flags, path));
        }
        place
    }

    fn add(&mut self, class: Class, flags: Option<u32>, path: &str) -> PlaceId {
        let flags = flags.map(marks);
        let class = match class {
            Class::Named(path) if self.named_count() >= NAMED_MAX => Class::Named(folder(&path)),
            class => class,
        };
        let same = |place: &Place| place.class.as_ref() == Some(&class) && place.flags == flags;
        let id = self.places.iter().position(same).unwrap_or_else(|| {
            self.places.push(Place { class: Some(class), flags, paths: BTreeSet::new() });
            self.places.len() - 1
        });
        let paths = &mut self.places[id].paths;
        if !path.is_empty() && paths.len() < PATHS_MAX {
            paths.insert(path.to_owned());
        }
        id
    }

    fn named_count(&self) -> usize {
        self.places.iter().filter(|place| matches!(place.class, Some(Class::Named(_)))).count()
    }
}

/// The flags that are told apart: the others (close-on-exec, large files) are of no interest to storage.
fn marks(flags: u32) -> u32 {
    process::marks(flags)
}

/// `/data/x/` of `/data/x/y`.
fn folder(path: &str) -> String {
    path.rfind('/').map_or_else(String::new, |at| format!("{}/…", &path[..at]))
}
