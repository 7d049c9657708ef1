//! Wait classes on a screen: order, signs and colours, the same as in reports.

use waits::WaitClass;

/// What a session does: on CPU (none), or waiting for something of a class.
pub type Class = Option<WaitClass>;

/// How many there are; idle sessions are not shown.
pub const COUNT: usize = 11;

/// All, from the bottom of the chart.
pub const ALL: [Class; COUNT] = [
    None,
    Some(WaitClass::Scheduler),
    Some(WaitClass::UserIo),
    Some(WaitClass::SystemIo),
    Some(WaitClass::Concurrency),
    Some(WaitClass::Application),
    Some(WaitClass::Commit),
    Some(WaitClass::Configuration),
    Some(WaitClass::Administrative),
    Some(WaitClass::Network),
    Some(WaitClass::Other),
];

/// Its place in [`ALL`].
pub fn index(class: Class) -> usize {
    ALL.iter().position(|c| *c == class).unwrap_or(COUNT - 1)
}

/// As it is written.
pub fn name(class: Class) -> &'static str {
    class.map_or("CPU", WaitClass::name)
}

/// The class of that name, as a record has it; none for idle waits. One that is not known belongs to the rest.
pub fn named(text: &str) -> Option<Class> {
    match text {
        "CPU" | "ON CPU" => Some(None),
        "Idle" => None,
        _ => Some(ALL.into_iter().find(|class| name(*class) == text).unwrap_or(Some(WaitClass::Other))),
    }
}

/// What it is drawn with where there are no colours.
pub fn sign(class: Class) -> char {
    ['█', '=', '▓', '▒', '#', '@', '░', '%', '&', '~', '+'][index(class)]
}

/// Among the 256 colours of a terminal.
pub fn colour(class: Class) -> u8 {
    [40, 157, 27, 39, 124, 166, 208, 137, 101, 180, 205][index(class)]
}

/// Colours and signs for what has none of its own: the events of one class.
pub const EVENT_COLOURS: [u8; 8] = [208, 39, 40, 205, 220, 141, 124, 80];
/// See [`EVENT_COLOURS`].
pub const EVENT_SIGNS: [char; 8] = ['█', '▒', '#', '░', '@', '▓', '%', '='];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_place() {
        for class in WaitClass::ALL {
            let expected = (class != WaitClass::Idle).then_some(Some(class));
            assert_eq!(named(class.name()), expected);
        }
        assert_eq!((named("CPU"), named("Cluster")), (Some(None), Some(Some(WaitClass::Other))));
        for (at, class) in ALL.into_iter().enumerate() {
            assert_eq!(index(class), at);
        }
    }
}
