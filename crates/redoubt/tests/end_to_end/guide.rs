//! What is printed without measuring anything.

use crate::stage::Stage;

#[test]
fn alone_it_names_three_commands_to_try() {
    let stage = Stage::new();
    let done = stage.run(&[]).ok();
    for command in ["redoubt doctor", "redoubt compare", "redoubt calibrate"] {
        assert!(done.stdout.contains(command), "{}", done.stdout);
    }
    assert!(done.stdout.lines().count() < 20, "a short guide:\n{}", done.stdout);
    stage.assert_untouched();
    assert!(stage.records().is_empty());
}

#[test]
fn help_teaches_by_examples() {
    let stage = Stage::new();
    for command in ["compare", "calibrate", "report", "sql"] {
        let help = stage.run(&[command, "--help"]).ok().stdout;
        assert!(help.contains("Examples:") && help.contains(&format!("redoubt {command} ")), "{help}");
    }
    let help = stage.run(&["--help"]).ok().stdout;
    for command in
        ["compare", "calibrate", "doctor", "report", "sql", "cases", "cleanup", "completions", "man"]
    {
        assert!(help.contains(command), "{command} is missing:\n{help}");
    }
}

#[test]
fn manual_completions_and_cases_are_there() {
    let stage = Stage::new();
    assert!(stage.run(&["man"]).ok().stdout.starts_with(".ie \\n(.g .ds Aq"), "roff");
    for shell in ["bash", "zsh", "fish"] {
        assert!(stage.run(&["completions", shell]).ok().stdout.contains("redoubt"), "{shell}");
    }
    let cases = stage.run(&["cases"]).ok().stdout;
    for name in ["growth", "commit", "calibrate"] {
        assert!(cases.contains(name), "{cases}");
    }
}

#[test]
fn without_runs_a_report_says_how_to_make_one() {
    let stage = Stage::new();
    assert!(stage.run(&["report"]).ok().stdout.contains("redoubt compare"));
    stage.run(&["report", "last"]).refused(&["last"]);
}

#[test]
fn without_leftovers_cleanup_has_nothing_to_undo() {
    let stage = Stage::new();
    assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
}
