//! The name that was probably meant.

/// The candidate nearest to `typed`, when it is near enough to be meant: one slip for every three letters.
pub fn nearest<'a, S: AsRef<str>>(typed: &str, candidates: &'a [S]) -> Option<&'a str> {
    const LETTERS_PER_SLIP: usize = 3;
    let slips_max = (typed.chars().count() / LETTERS_PER_SLIP).max(1);
    candidates
        .iter()
        .map(|candidate| (strsim::osa_distance(typed, candidate.as_ref()), candidate.as_ref()))
        .filter(|(slips, _)| *slips <= slips_max)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// `. Did you mean NAME?` or nothing, to stand behind "is not a factor".
pub(super) fn did_you_mean<S: AsRef<str>>(typed: &str, candidates: &[S]) -> String {
    nearest(typed, candidates).map_or_else(String::new, |name| format!(". Did you mean {name}?"))
}
