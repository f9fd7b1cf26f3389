//! Source files as the rules see them.

use std::fs;
use std::path::Path;

/// One file.
pub(crate) struct File {
    /// Its path below `src`, or below the crate's root for files that are not in `src`.
    pub(crate) path: String,
    text: String,
}

/// The shipped files of `src`: those that are compiled for tests alone are left out.
pub(crate) fn files() -> impl Iterator<Item = File> {
    let all = read("src", "src/");
    let tests: Vec<_> = all.iter().flat_map(File::test_modules).collect();
    assert!(all.len() > 50, "the source is where it was");
    all.into_iter().filter(move |f| {
        !tests
            .iter()
            .any(|t| f.path == format!("{t}.rs") || f.path.starts_with(&format!("{t}/")))
    })
}

/// Every Rust file of the project.
pub(crate) fn all() -> impl Iterator<Item = File> {
    read("src", "")
        .into_iter()
        .chain(read("tests", ""))
        .chain(read("benches", ""))
}

fn read(folder: &str, strip: &str) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                found.push(File::of(
                    name.strip_prefix(strip).unwrap_or(name),
                    &fs::read_to_string(&path).unwrap(),
                ));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

impl File {
    pub(crate) fn of(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn length(&self) -> usize {
        self.text.lines().count()
    }

    /// Lines with their numbers, without comments, up to the tests at the file's end.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let shipped = self.text.find("#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        let lines = self.text[..shipped].lines().enumerate();
        lines.map(|(n, line)| {
            (
                n + 1,
                line.split_once("//")
                    .filter(|(code, _)| !code.ends_with(':'))
                    .map_or(line, |(code, _)| code),
            )
        })
    }

    /// What the file uses of this crate, as a path of modules below the root.
    pub(crate) fn arrows(&self) -> impl Iterator<Item = (usize, String)> {
        let home = self.module();
        self.lines().flat_map(move |(n, line)| {
            let home = home.clone();
            paths(line)
                .filter_map(move |path| target(&home, &path))
                .map(move |used| (n, used))
        })
    }

    /// Dependencies that the file names.
    pub(crate) fn dependencies(&self) -> impl Iterator<Item = (usize, String)> {
        let known = dependencies();
        self.lines().flat_map(move |(n, line)| {
            let known = known.clone();
            paths(line)
                .map(|path| path[0].clone())
                .filter(move |first| known.contains(first))
                .map(move |first| (n, first))
        })
    }

    /// The file's own place: `pool/mod.rs` is `[pool]`, `pool/worker.rs` is `[pool, worker]`.
    fn module(&self) -> Vec<String> {
        let path = self.path.trim_end_matches(".rs").trim_end_matches("/mod");
        path.split('/').map(str::to_owned).collect()
    }

    /// Modules that this file declares for tests alone, as paths without an ending.
    fn test_modules(&self) -> Vec<String> {
        let declared = self.text.split("#[cfg(test)]\nmod ").skip(1);
        let names = declared
            .filter_map(|rest| rest.split_once(';'))
            .filter(|(name, _)| !name.contains([' ', '\n']));
        names
            .map(|(name, _)| format!("{}/{name}", self.module().join("/")))
            .collect()
    }
}

/// The first paths (`a::b::c`) of a line; what follows a brace belongs to the path before it.
fn paths(line: &str) -> impl Iterator<Item = Vec<String>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words = line.split(move |c: char| !is_word(c) && c != ':');
    let paths = words
        .filter(|word| word.contains("::"))
        .map(|word| word.split("::").map(str::to_owned).collect());
    paths.filter(|path: &Vec<String>| !path[0].is_empty() && !path[0].contains(':'))
}

/// The module that a path leads to, when it is one of this crate: names of modules are lower case.
fn target(home: &[String], path: &[String]) -> Option<String> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let mut whole: Vec<&str> = match path[0].as_str() {
        "crate" | "lagwarden" => Vec::new(),
        "super" => home[..home.len().saturating_sub(ups)]
            .iter()
            .map(String::as_str)
            .collect(),
        _ => return None,
    };
    let rest = path[ups.max(1)..].iter().map(String::as_str);
    whole.extend(rest.take_while(|part| part.starts_with(|c: char| c.is_lowercase())));
    Some(whole.join("::"))
}

/// The crates of `Cargo.toml`'s `[dependencies]`, as code names them.
fn dependencies() -> Vec<String> {
    let manifest = include_str!("../../Cargo.toml");
    let section = manifest
        .split("[dependencies]\n")
        .nth(1)
        .unwrap()
        .split("\n[")
        .next()
        .unwrap();
    let names = section
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name.replace('-', "_"));
    names.collect()
}
