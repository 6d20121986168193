//! Fenced blocks of a Markdown page.

/// One fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The words behind the opening fence.
    pub language: String,
    /// The lines between the fences.
    pub text: String,
}

/// All fenced blocks, in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some(Block { language: language.trim().to_owned(), text: String::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Replaces what stands between `<!-- name: generated -->` and `<!-- /name -->`; `None` when the page has no such place.
pub fn with_generated(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name}: generated -->\n"), format!("<!-- /{name} -->"));
    let from = page.find(&begin)? + begin.len();
    let to = from + page[from..].find(&end)?;
    Some(format!("{}\n{}\n{}", &page[..from], text.trim(), &page[to..]))
}
