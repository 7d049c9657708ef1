//! Wait classes in the order of the usual chart, with time on CPU beneath them.

use waits::WaitClass;

/// What a session was doing: on CPU, or waiting for something of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// No wait accounts for the time.
    Cpu,
    /// The processor is shared out.
    Scheduler,
    /// Own reads and writes of data.
    UserIo,
    /// Writes that background processes do for all.
    SystemIo,
    /// Sessions in each other's way inside the database.
    Concurrency,
    /// Sessions in each other's way because the application says so.
    Application,
    /// Until redo is on disk.
    Commit,
    /// Something is too small, too few or too slow.
    Configuration,
    /// A DBA's command.
    Administrative,
    /// Between database and client.
    Network,
    /// Queues (other databases).
    Queueing,
    /// Between the nodes of a cluster (other databases).
    Cluster,
    /// The rest.
    Other,
}

impl Class {
    /// All, from the bottom of the chart.
    pub const ALL: [Self; 13] = [
        Self::Cpu,
        Self::Scheduler,
        Self::UserIo,
        Self::SystemIo,
        Self::Concurrency,
        Self::Application,
        Self::Commit,
        Self::Configuration,
        Self::Administrative,
        Self::Network,
        Self::Queueing,
        Self::Cluster,
        Self::Other,
    ];

    /// The class of that name; none for idle waits, which are not drawn and no part of DB time. A name that is not known
    /// belongs to the rest.
    pub fn named(name: &str) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|class| class.name() == name);
        match name {
            "Idle" => None,
            "ON CPU" => Some(Self::Cpu),
            _ => Some(known.unwrap_or(Self::Other)),
        }
    }

    /// As `v$event_name.wait_class` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Scheduler => WaitClass::Scheduler.name(),
            Self::UserIo => WaitClass::UserIo.name(),
            Self::SystemIo => WaitClass::SystemIo.name(),
            Self::Concurrency => WaitClass::Concurrency.name(),
            Self::Application => WaitClass::Application.name(),
            Self::Commit => WaitClass::Commit.name(),
            Self::Configuration => WaitClass::Configuration.name(),
            Self::Administrative => WaitClass::Administrative.name(),
            Self::Network => WaitClass::Network.name(),
            Self::Queueing => "Queueing",
            Self::Cluster => "Cluster",
            Self::Other => WaitClass::Other.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_the_catalogue_has_its_place() {
        for class in WaitClass::ALL {
            let ours = Class::named(class.name());
            match class {
                WaitClass::Idle => assert_eq!(ours, None),
                _ => assert_eq!(ours.map(Class::name), Some(class.name())),
            }
        }
        assert_eq!(Class::named("Buffer pins"), Some(Class::Other));
        assert!(Class::ALL.is_sorted());
    }
}
