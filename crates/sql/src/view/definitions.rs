//! All views. Times are Oracle's: TIME_WAITED in hundredths of a second, …_MICRO in microseconds, …_SERVICETIME in
//! milliseconds.
//!
//! Source: Oracle Database Reference 19c, the chapters on dynamic performance views and static data dictionary views.

use super::View;

/// All views, by name.
pub const VIEWS: &[View] = &[
    View {
        name: "dba_data_files",
        about: "Data files of tablespaces.",
        columns: "FILE_NAME:t FILE_ID:n TABLESPACE_NAME:t BYTES:n BLOCKS:n STATUS:t RELATIVE_FNO:n AUTOEXTENSIBLE:t \
                  MAXBYTES:n MAXBLOCKS:n INCREMENT_BY:n USER_BYTES:n USER_BLOCKS:n ONLINE_STATUS:t",
    },
    View {
        name: "dba_ind_columns",
        about: "Columns of indexes.",
        columns: "INDEX_OWNER:t INDEX_NAME:t TABLE_OWNER:t TABLE_NAME:t COLUMN_NAME:t COLUMN_POSITION:n",
    },
    View {
        name: "dba_indexes",
        about: "Indexes.",
        columns: "OWNER:t INDEX_NAME:t INDEX_TYPE:t TABLE_OWNER:t TABLE_NAME:t UNIQUENESS:t TABLESPACE_NAME:t \
                  STATUS:t",
    },
    View {
        name: "dba_segments",
        about: "Space of tables, indexes and undo.",
        columns: "OWNER:t SEGMENT_NAME:t SEGMENT_TYPE:t TABLESPACE_NAME:t HEADER_FILE:n HEADER_BLOCK:n BYTES:n \
                  BLOCKS:n EXTENTS:n BUFFER_POOL:t FLASH_CACHE:t",
    },
    View {
        name: "dba_source",
        about: "Lines of text, something to fill tables with.",
        columns: "OWNER:t NAME:t TYPE:t LINE:n TEXT:t",
    },
    View {
        name: "dba_tab_columns",
        about: "Columns of tables.",
        columns: "OWNER:t TABLE_NAME:t COLUMN_NAME:t DATA_TYPE:t DATA_LENGTH:n NULLABLE:t COLUMN_ID:n",
    },
    View {
        name: "dba_tables",
        about: "Tables.",
        columns: "OWNER:t TABLE_NAME:t TABLESPACE_NAME:t STATUS:t BLOCKS:n BUFFER_POOL:t FLASH_CACHE:t",
    },
    View {
        name: "dba_tablespaces",
        about: "Tablespaces, with what they are for.",
        columns: "TABLESPACE_NAME:t BLOCK_SIZE:n STATUS:t CONTENTS:t EXTENT_MANAGEMENT:t ALLOCATION_TYPE:t \
                  SEGMENT_SPACE_MANAGEMENT:t BIGFILE:t",
    },
    View {
        name: "dba_temp_files",
        about: "Temp files of tablespaces.",
        columns: "FILE_NAME:t FILE_ID:n TABLESPACE_NAME:t BYTES:n BLOCKS:n STATUS:t RELATIVE_FNO:n AUTOEXTENSIBLE:t \
                  MAXBYTES:n MAXBLOCKS:n INCREMENT_BY:n USER_BYTES:n USER_BLOCKS:n",
    },
    View {
        name: "v$active_session_history",
        about: "Sessions that worked or waited, sampled.",
        columns: "SAMPLE_ID:n SAMPLE_TIME:t USECS_PER_ROW:n SESSION_ID:n SESSION_SERIAL#:n SESSION_TYPE:t \
                  SQL_ID:t SESSION_STATE:t EVENT:t EVENT#:n P1TEXT:t P1:n P2TEXT:t P2:n P3TEXT:t P3:n WAIT_CLASS:t \
                  WAIT_TIME:n TIME_WAITED:n BLOCKING_SESSION:n CURRENT_FILE#:n CURRENT_BLOCK#:n PROGRAM:t XID:t",
    },
    View {
        name: "v$bh",
        about: "Buffers of the cache.",
        columns: "FILE#:n BLOCK#:n STATUS:t DIRTY:t TEMP:t OBJD:n TS#:n BUFFER_POOL:t TCH:n",
    },
    View {
        name: "v$datafile",
        about: "Data files, as the control file has them.",
        columns: "FILE#:n TS#:n RFILE#:n STATUS:t ENABLED:t CHECKPOINT_CHANGE#:n BYTES:n BLOCKS:n BLOCK_SIZE:n NAME:t",
    },
    View {
        name: "v$event_histogram_micro",
        about: "Waits by how long they took; WAIT_TIME_MICRO is the upper end of a bucket.",
        columns: "EVENT#:n EVENT:t WAIT_TIME_MICRO:n WAIT_COUNT:n WAIT_TIME_FORMAT:t",
    },
    View {
        name: "v$event_name",
        about: "What can be waited for.",
        columns: "EVENT#:n EVENT_ID:n NAME:t PARAMETER1:t PARAMETER2:t PARAMETER3:t WAIT_CLASS:t DISPLAY_NAME:t",
    },
    View {
        name: "v$flashfilestat",
        about: "Files of the flash cache, and reads of single blocks from them.",
        columns: "FLASHFILE#:n NAME:t BYTES:n ENABLED:n SINGLEBLKRDS:n SINGLEBLKRDTIM_MICRO:n",
    },
    View {
        name: "v$instance",
        about: "The instance.",
        columns: "INSTANCE_NUMBER:n INSTANCE_NAME:t VERSION:t STATUS:t",
    },
    View {
        name: "v$iostat_file",
        about: "Requests and service times, for each data and temp file, and for other kinds of files together.",
        columns: "FILE_NO:n FILETYPE_ID:n FILETYPE_NAME:t SMALL_READ_MEGABYTES:n SMALL_WRITE_MEGABYTES:n \
                  LARGE_READ_MEGABYTES:n LARGE_WRITE_MEGABYTES:n SMALL_READ_REQS:n SMALL_WRITE_REQS:n \
                  SMALL_SYNC_READ_REQS:n LARGE_READ_REQS:n LARGE_WRITE_REQS:n SMALL_READ_SERVICETIME:n \
                  SMALL_WRITE_SERVICETIME:n SMALL_SYNC_READ_LATENCY:n LARGE_READ_SERVICETIME:n \
                  LARGE_WRITE_SERVICETIME:n ASYNCH_IO:t ACCESS_METHOD:t RETRIES_ON_ERROR:n",
    },
    View {
        name: "v$log",
        about: "Redo groups.",
        columns: "GROUP#:n THREAD#:n SEQUENCE#:n BYTES:n BLOCKSIZE:n MEMBERS:n ARCHIVED:t STATUS:t FIRST_CHANGE#:n \
                  FIRST_TIME:t NEXT_CHANGE#:n",
    },
    View { name: "v$logfile", about: "Files of redo groups.", columns: "GROUP#:n STATUS:t TYPE:t MEMBER:t" },
    View {
        name: "v$mystat",
        about: "Counters of this session; v$statname has their names.",
        columns: "SID:n STATISTIC#:n VALUE:n",
    },
    View {
        name: "v$parameter",
        about: "Parameters in force.",
        columns: "NUM:n NAME:t TYPE:n VALUE:t DISPLAY_VALUE:t ISDEFAULT:t ISMODIFIED:t ISSYS_MODIFIABLE:t \
                  DESCRIPTION:t",
    },
    View {
        name: "v$session",
        about: "Sessions, background processes included.",
        columns: "SID:n SERIAL#:n STATUS:t TYPE:t PROGRAM:t SQL_ID:t EVENT#:n EVENT:t P1TEXT:t P1:n P2TEXT:t P2:n \
                  P3TEXT:t P3:n WAIT_CLASS:t WAIT_TIME_MICRO:n STATE:t BLOCKING_SESSION:n",
    },
    View {
        name: "v$session_wait",
        about: "What each session waits for.",
        columns: "SID:n EVENT:t P1TEXT:t P1:n P2TEXT:t P2:n P3TEXT:t P3:n WAIT_CLASS:t WAIT_TIME_MICRO:n STATE:t",
    },
    View { name: "v$sgastat", about: "Memory of the instance.", columns: "POOL:t NAME:t BYTES:n" },
    View {
        name: "v$sql",
        about: "Statements that were run since the start.",
        columns: "SQL_ID:t SQL_TEXT:t",
    },
    View { name: "v$statname", about: "Names of counters.", columns: "STATISTIC#:n NAME:t CLASS:n" },
    View {
        name: "v$sys_time_model",
        about: "Where the time of all sessions went, in microseconds; CPU is what no wait accounts for.",
        columns: "STAT_ID:n STAT_NAME:t VALUE:n",
    },
    View {
        name: "v$sysstat",
        about: "Counters since the instance was opened.",
        columns: "STATISTIC#:n NAME:t CLASS:n VALUE:n",
    },
    View {
        name: "v$system_event",
        about: "Waits since the instance was opened; …_FG without background processes.",
        columns: "EVENT:t TOTAL_WAITS:n TOTAL_TIMEOUTS:n TIME_WAITED:n AVERAGE_WAIT:n TIME_WAITED_MICRO:n \
                  TOTAL_WAITS_FG:n TIME_WAITED_FG:n AVERAGE_WAIT_FG:n TIME_WAITED_MICRO_FG:n EVENT_ID:n WAIT_CLASS:t",
    },
    View { name: "v$tablespace", about: "Tablespaces.", columns: "TS#:n NAME:t BIGFILE:t" },
    View {
        name: "v$tempfile",
        about: "Temp files.",
        columns: "FILE#:n TS#:n RFILE#:n STATUS:t ENABLED:t BYTES:n BLOCKS:n BLOCK_SIZE:n NAME:t",
    },
];
