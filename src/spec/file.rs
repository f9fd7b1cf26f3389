//! Pools in files: the same pool without an API server, so its part of the work is done here.
//!
//! `kubectl` refuses a field that does not exist; the types do not, since a newer field in a stored object must not stop an
//! older process. A file is held against the schema of the resource definition instead, and every mistake, of form or of
//! meaning, is told with its line and column.
//!
//! A file may hold several documents. Secrets beside the pools are read too, so that one file can be all that a pool needs;
//! nothing that they hold is in an error. Documents of other kinds are passed over: such files are applied to clusters too.

mod node;

use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use self::node::Node;
use super::PoolSpec;
use crate::api::v1alpha1::ReplicaPool;
use crate::api::{GROUP, KIND, VERSION, crd};

/// A mistake in a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct FileError {
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
    /// What is wrong there, and what to write instead.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

/// What a file holds.
#[derive(Debug)]
pub struct PoolFile {
    /// The pools, in order; at least one.
    pub pools: Vec<PoolDocument>,
    /// The Secrets, in order.
    pub secrets: Vec<Secret>,
}

/// A pool in a file.
#[derive(Debug)]
pub struct PoolDocument {
    /// The pool, as it was written.
    pub pool: ReplicaPool,
    node: Node,
}

impl PoolDocument {
    /// Parses the pool, or says everything that is wrong with it and where.
    pub fn spec(&self) -> Result<PoolSpec, Vec<FileError>> {
        PoolSpec::try_new(&self.pool).map_err(|errors| {
            let located = errors.into_iter().map(|error| {
                let at = self.node.nearest(&error.field);
                at.error(error.to_string())
            });
            located.collect()
        })
    }
}

/// The type that every document has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

/// Reads the documents of `text`, or says everything that is wrong with their form and where.
pub fn read(text: &str) -> Result<PoolFile, Vec<FileError>> {
    let mut file = PoolFile {
        pools: Vec::new(),
        secrets: Vec::new(),
    };
    let mut errors = Vec::new();
    for document in documents(text) {
        if let Err(found) = read_document(&document, &mut file) {
            errors.extend(found);
        }
    }
    if file.pools.is_empty() && errors.is_empty() {
        errors.push(FileError {
            line: 1,
            column: 1,
            message: format!("the file holds no {KIND}: write one with apiVersion: {GROUP}/{VERSION} and kind: {KIND}"),
        });
    }
    if errors.is_empty() { Ok(file) } else { Err(errors) }
}

/// The documents of a file, each on its own lines of the file: what comes before it is blank.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for (i, line) in text.lines().enumerate() {
        let is_mark = |mark: &str| {
            line.strip_prefix(mark)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        };
        if is_mark("---") || is_mark("...") {
            documents.push("\n".repeat(i));
        }
        if let Some(document) = documents.last_mut() {
            document.push_str(if is_mark("---") || is_mark("...") { "" } else { line });
            document.push('\n');
        }
    }
    documents
}

fn read_document(text: &str, file: &mut PoolFile) -> Result<(), Vec<FileError>> {
    if text
        .lines()
        .all(|line| line.trim_start().is_empty() || line.trim_start().starts_with('#'))
    {
        return Ok(());
    }
    let node: Node = parse(text).map_err(|error| vec![error])?;
    let TypeMeta { api_version, kind } = parse(text).map_err(|error| vec![error])?;
    let ours = format!("{GROUP}/{VERSION}");
    if api_version == "v1" && kind == "Secret" {
        file.secrets.push(secret(text, &node).map_err(|error| vec![error])?);
    } else if api_version == ours && kind == KIND {
        let unknown = node.unknown_fields(&crd::schema());
        if !unknown.is_empty() {
            return Err(unknown);
        }
        let pool = parse(text).map_err(|error| vec![node.named(error, &crd::schema())])?;
        file.pools.push(PoolDocument { pool, node });
    } else if kind.is_empty() || api_version.is_empty() {
        let message =
            format!("the document has no apiVersion or no kind: a pool has apiVersion: {ours} and kind: {KIND}");
        return Err(vec![node.error(message)]);
    } else if kind.eq_ignore_ascii_case(KIND) || api_version.starts_with(GROUP) {
        let message = format!("{api_version} {kind} is not known: a pool has apiVersion: {ours} and kind: {KIND}");
        return Err(vec![
            node.nearest(if kind == KIND { "apiVersion" } else { "kind" })
                .error(message),
        ]);
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, FileError> {
    let options = serde_yaml::options! { with_snippet: false };
    serde_yaml::from_str_with_options(text, options).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
        // The library says the place once more at the end.
        let message = error.to_string();
        let end = message
            .find(" at line ")
            .or_else(|| message.find('\n'))
            .unwrap_or(message.len());
        FileError {
            line,
            column,
            message: message[..end].to_owned(),
        }
    })
}

/// A Secret, with `stringData` as the API server would store it.
fn secret(text: &str, node: &Node) -> Result<Secret, FileError> {
    // The library's own words could quote a value.
    let refused =
        |_| node.error("the Secret cannot be read: data holds base64 text, and stringData holds plain text".into());
    let mut secret: Secret = parse(text).map_err(refused)?;
    let plain = secret.string_data.take().unwrap_or_default();
    if !plain.is_empty() {
        let data = secret.data.get_or_insert_default();
        data.extend(
            plain
                .into_iter()
                .map(|(key, value)| (key, ByteString(value.into_bytes()))),
        );
    }
    Ok(secret)
}
