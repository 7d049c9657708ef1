//! What our own NFS client saw, under the names of Direct NFS: Oracle's columns first, then those that it lacks.

use super::RecordView;

/// As they were when last sampled; latencies in microseconds, over the life of a channel.
pub(super) const VIEWS: &[RecordView] = &[
    RecordView {
        name: "v$dnfs_servers",
        from: "dnfs_server",
        query: "SELECT mount AS ID, server AS SVRNAME, export AS DIRNAME, mount_port AS MNTPORT, port AS NFSPORT,
            version AS NFSVERSION, write_max AS WTMAX, read_max AS RTMAX, 'SYS' AS SECURITY, paths AS PATHS
            FROM dnfs_server WHERE id IN (SELECT max(id) FROM dnfs_server GROUP BY mount)",
    },
    RecordView {
        name: "v$dnfs_channels",
        from: "dnfs_channel",
        query: "SELECT c.worker AS PNUM, s.server AS SVRNAME, c.address AS PATH, c.local AS LOCAL, c.channel AS CH_ID,
            c.mount AS SVR_ID, c.reads + c.writes + c.commits AS SENDS, c.receives AS RECVS, c.reconnects AS DPRECO,
            c.local_port AS CLIENTPORT, c.worker_name AS PROGRAM, c.state AS STATE,
            CASE c.data_server WHEN 1 THEN 'YES' ELSE 'NO' END AS DATA_SERVER,
            c.reads AS READS, c.writes AS WRITES, c.commits AS COMMITS, c.replays AS REPLAYS,
            c.read_bytes AS READ_BYTES, c.written_bytes AS WRITE_BYTES,
            round(c.read_ns / 1e3 / nullif(c.reads_done, 0), 1) AS READ_MICRO_AVG, c.read_max_ns / 1000 AS READ_MICRO_MAX,
            round(c.write_ns / 1e3 / nullif(c.writes_done, 0), 1) AS WRITE_MICRO_AVG, c.write_max_ns / 1000 AS WRITE_MICRO_MAX,
            c.stalls AS STALLS, c.stall_ns / 1000 AS STALL_MICRO, c.stall_max_ns / 1000 AS STALL_MICRO_MAX
            FROM dnfs_channel c JOIN dnfs_server s ON s.mount = c.mount
            WHERE c.id IN (SELECT max(id) FROM dnfs_channel GROUP BY mount, channel)",
    },
    RecordView {
        name: "v$dnfs_files",
        from: "dnfs_file",
        query: "SELECT path AS FILENAME, bytes AS FILESIZE, mount AS SVR_ID, layout AS LAYOUT, nodes AS NODES,
            since_ns / 1e9 AS SINCE_SECONDS, recalls AS RECALLS, refreshes AS REFRESHES, doubts AS DOUBTS, moves AS MOVES
            FROM dnfs_file WHERE id IN (SELECT max(id) FROM dnfs_file GROUP BY mount, path)",
    },
    RecordView {
        name: "v$dnfs_stats",
        from: "dnfs_stat",
        query: "SELECT mount AS SVR_ID,
            sum(calls * (operation = 'NULL')) AS NFS_NULL, sum(calls * (operation = 'GETATTR')) AS NFS_GETATTR,
            sum(calls * (operation = 'SETATTR')) AS NFS_SETATTR, sum(calls * (operation = 'LOOKUP')) AS NFS_LOOKUP,
            sum(calls * (operation = 'ACCESS')) AS NFS_ACCESS, sum(calls * (operation = 'READLINK')) AS NFS_READLINK,
            sum(calls * (operation = 'READ')) AS NFS_READ, sum(calls * (operation = 'WRITE')) AS NFS_WRITE,
            sum(calls * (operation = 'CREATE')) AS NFS_CREATE, sum(calls * (operation = 'MKDIR')) AS NFS_MKDIR,
            sum(calls * (operation = 'SYMLINK')) AS NFS_SYMLINK, sum(calls * (operation = 'MKNOD')) AS NFS_MKNOD,
            sum(calls * (operation = 'REMOVE')) AS NFS_REMOVE, sum(calls * (operation = 'RMDIR')) AS NFS_RMDIR,
            sum(calls * (operation = 'RENAME')) AS NFS_RENAME, sum(calls * (operation = 'LINK')) AS NFS_LINK,
            sum(calls * (operation = 'READDIR')) AS NFS_READDIR,
            sum(calls * (operation = 'READDIRPLUS')) AS NFS_READDIRPLUS,
            sum(calls * (operation = 'FSSTAT')) AS NFS_FSSTAT, sum(calls * (operation = 'FSINFO')) AS NFS_FSINFO,
            sum(calls * (operation = 'PATHCONF')) AS NFS_PATHCONF, sum(calls * (operation = 'COMMIT')) AS NFS_COMMIT,
            sum(calls * (operation = 'MOUNT')) AS NFS_MOUNT,
            coalesce((SELECT sum(c.read_bytes) FROM dnfs_channel c WHERE c.mount = s.mount
                AND c.id IN (SELECT max(id) FROM dnfs_channel GROUP BY mount, channel)), 0) AS NFS_READBYTES,
            coalesce((SELECT sum(c.written_bytes) FROM dnfs_channel c WHERE c.mount = s.mount
                AND c.id IN (SELECT max(id) FROM dnfs_channel GROUP BY mount, channel)), 0) AS NFS_WRITEBYTES,
            sum(calls * (operation = 'OPEN')) AS NFS_OPEN, sum(calls * (operation = 'CLOSE')) AS NFS_CLOSE,
            sum(calls * (operation = 'RENEW')) AS NFS_RENEW, sum(calls * (operation = 'SEQUENCE')) AS NFS_SEQUENCE,
            sum(calls * (operation = 'EXCHANGE_ID')) AS NFS_EXCHANGE_ID,
            sum(calls * (operation = 'CREATE_SESSION')) AS NFS_CREATE_SESSION,
            sum(calls * (operation = 'BIND_CONN_TO_SESSION')) AS NFS_BIND_CONN_TO_SESSION,
            sum(calls * (operation = 'LAYOUTGET')) AS NFS_LAYOUTGET,
            sum(calls * (operation = 'LAYOUTRETURN')) AS NFS_LAYOUTRETURN,
            sum(calls * (operation = 'LAYOUTCOMMIT')) AS NFS_LAYOUTCOMMIT,
            sum(calls * (operation = 'GETDEVICEINFO')) AS NFS_GETDEVICEINFO
            FROM dnfs_stat s WHERE id IN (SELECT max(id) FROM dnfs_stat GROUP BY mount, operation) GROUP BY mount",
    },
];
