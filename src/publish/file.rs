//! Publishing to a file, for the form without a cluster: the whole decision as JSON, replaced at once.
//!
//! A reader sees the old file or the new one, never half of one: it is written beside it and renamed over it.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Replaces a file as a whole.
#[derive(Clone, Debug)]
pub struct FilePublisher {
    path: PathBuf,
    last: Option<Vec<u8>>,
}

impl FilePublisher {
    /// Publishes to `path`. Nothing is written yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, last: None }
    }

    /// Writes `content` when it differs from what was written last; says whether it did.
    pub fn publish(&mut self, content: &impl Serialize) -> io::Result<bool> {
        let mut bytes = serde_json::to_vec_pretty(content)?;
        bytes.push(b'\n');
        if self.last.as_ref() == Some(&bytes) {
            return Ok(false);
        }
        let beside = beside(&self.path);
        std::fs::write(&beside, &bytes)?;
        std::fs::rename(&beside, &self.path)?;
        self.last = Some(bytes);
        Ok(true)
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_when_something_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders.json");
        let mut publisher = FilePublisher::new(path.clone());
        assert!(publisher.publish(&["a", "b"]).unwrap());
        assert!(!publisher.publish(&["a", "b"]).unwrap());
        assert!(publisher.publish(&["a"]).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\n  \"a\"\n]\n");
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }
}
