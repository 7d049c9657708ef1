//! All runs as one page: a table that leads to each report, and a form for those that are to stand side by side.

use super::document;
use crate::chart::escape;
use crate::words;
use record::runs::RunSummary;

/// The page. Without a script: the form is an ordinary one.
pub fn page(folder: &str, runs: &[RunSummary]) -> String {
    let mut body =
        format!("<header class=\"run\"><b>redoubt serve</b> · {}</header>\n<main>\n", escape(folder));
    if runs.is_empty() {
        body.push_str(
            "<h1>No runs yet.</h1>\n<ul class=\"lead\"><li>Make one: redoubt compare</li></ul>\n</main>\n",
        );
        return document("Runs", &body);
    }
    let count = runs.len();
    body.push_str(&format!(
        "<h1>{count} {}</h1>\n<ul class=\"lead\"><li>Open one, or choose two and set them side by side; the older one is the first.</li></ul>\n",
        if count == 1 { "run" } else { "runs" }
    ));
    body.push_str(
        "<form action=\"compare\" method=\"get\">\n<p><button type=\"submit\">Side by side</button></p>\n<div class=\"scroll\"><table class=\"lines\">\n<thead><tr>\
         <th class=\"text\">begun</th><th class=\"text\">run</th><th class=\"text\">what</th><th class=\"text\">status</th><th class=\"text\">on</th><th>size</th>\
         </tr></thead>\n<tbody>\n",
    );
    runs.iter().for_each(|run| body.push_str(&row(run)));
    body.push_str("</tbody></table></div>\n</form>\n</main>\n");
    document("Runs", &body)
}

fn row(run: &RunSummary) -> String {
    let id = escape(&run.id);
    // What failed says why on its own page.
    let status = run.status.split(':').next().unwrap_or_default();
    format!(
        "<tr><td class=\"text\"><label><input type=\"checkbox\" name=\"run\" value=\"{id}\" aria-label=\"choose {id}\"> {}</label></td>\
         <td class=\"text\"><a href=\"run/{}\">{id}</a></td><td class=\"text\">{}</td><td class=\"text\" title=\"{}\">{}</td><td class=\"text\">{}</td><td>{}</td></tr>\n",
        escape(&words::moment(&run.started_utc)),
        address(&run.id),
        escape(&words::what(&run.kind, run.case.as_deref())),
        escape(&run.status),
        escape(status),
        escape(&run.target),
        run.size
    )
}

/// A name as part of an address.
fn address(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    #[test]
    fn every_run_is_led_to_and_nothing_is_taken_for_html() {
        let run = |id: &str, status: &str| RunSummary {
            id: id.into(),
            path: id.into(),
            kind: "compare".into(),
            case: Some("commit".into()),
            target: "/data <x>".into(),
            started_utc: "2026-11-22T17:00:00Z".into(),
            status: status.into(),
            size: Bytes::kib(4),
        };
        let html = page(
            "/home/runs",
            &[run("a-1", "finished"), run("b-2", "failed: \"x\" is gone"), run("é 5%", "finished")],
        );
        for part in [
            "href=\"run/a-1\"",
            "value=\"b-2\"",
            "/data &lt;x&gt;",
            ">failed<",
            ">compare commit<",
            "3 runs",
            "href=\"run/%C3%A9%205%25\"",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<x>") && !html.contains("http"));
        assert!(page("/home/runs", &[]).contains("redoubt compare"));
    }
}
