import ArgumentParser
import RecordModel
import Testing

@testable import zonekeeper

@Suite("Commands for schemas, zones, users and feeds")
struct CommandTests {
    private func json(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8)) }

    @Test(
        "Commands are found by their names, and by those that others know them by",
        arguments: [
            (["schema", "import", "x.ckdb", "--dry-run"], "SchemaImportCommand"),
            (["schema", "import-schema", "x.ckdb", "--validate"], "SchemaImportCommand"),
            (["schema", "export-schema"], "SchemaExportCommand"),
            (["schema", "deploy", "--dry-run", "--expected-version", "3"], "SchemaDeployCommand"),
            (["schema", "reset", "--confirm", "c"], "SchemaResetCommand"),
            (["schema", "reset", "--dry-run"], "SchemaResetCommand"),
            (["schema", "show", "Place", "Users"], "SchemaShowCommand"),
            (["schema", "add-index", "c", "T", "___recordID", "queryable"], "SchemaAddIndexCommand"),
            (["schema", "remove-index", "c", "T", "f", "SORTABLE", "--dry-run"], "SchemaRemoveIndexCommand"),
            (["zone", "list"], "ZoneListCommand"), (["zone", "create", "A", "B"], "ZoneCreateCommand"),
            (["zone", "delete", "A"], "ZoneDeleteCommand"),
            (["zone", "changes", "--token", "AAA="], "ZoneChangesCommand"),
            (["record", "changes", "--zone", "A"], "RecordChangesCommand"),
            (["record", "changes", "--zone", "A", "--from-start", "--reverse"], "RecordChangesCommand"),
            (["asset", "get", "r", "photo", "-o", "x.jpg", "--number", "2"], "AssetGetCommand"),
            (["asset", "stat", "r", "--database", "private", "--zone", "A"], "AssetStatCommand"),
            (["record", "save", "--type", "T", "photo:ASSET=@x"], "RecordSaveCommand"),
            (["record", "versions", "r", "--database", "private"], "RecordVersionsCommand"),
            (["record", "restore", "r", "--version", "1.2"], "RecordRestoreCommand"),
            (["user", "create", "ada", "--email", "a@b.c", "--discoverable"], "UserCreateCommand"),
            (["user", "update", "ada", "--family-name", "", "--no-discoverable"], "UserUpdateCommand"),
            (["container", "rotate-key"], "ContainerRotateKeyCommand"),
            (["container", "delete", "c", "--confirm", "c"], "ContainerDeleteCommand"),
            (["container", "restore", "c"], "ContainerRestoreCommand"),
            (["subscription", "list", "--public"], "SubscriptionListCommand"),
            (["subscription", "list", "--all"], "SubscriptionListCommand"),
            (["subscription", "list", "--types"], "SubscriptionListCommand"),
            (["webhook", "create", "w", "--receiver", "https://h.example/", "--private"], "WebhookCreateCommand"),
            (["webhook", "update", "w", "--type-of-record", "A", "B", "--field", "f"], "WebhookUpdateCommand"),
            (["webhook", "update", "w", "--disable-deliveries", "--rotate-secret"], "WebhookUpdateCommand"),
            (["webhook", "test", "w"], "WebhookTestCommand"),
            (["act-as", "start", "ada", "--reason", "r", "--write", "--minutes", "5"], "ActAsStartCommand"),
            (["act-as", "list"], "ActAsListCommand"), (["act-as", "stop", "0f"], "ActAsStopCommand"),
            (["record", "get", "r", "--database", "private", "--act-as", "0f"], "RecordGetCommand"),
            (["container", "describe", "c", "--hidden", "--note", "n"], "ContainerDescribeCommand"),
            (["container", "describe", "--no-hidden"], "ContainerDescribeCommand"),
            (["schema", "history", "--before", "3"], "SchemaHistoryCommand"),
            (["schema", "restore", "3", "--dry-run"], "SchemaRestoreCommand"),
            (["schema", "code", "Place"], "SchemaCodeCommand"),
            (["schema", "export", "--of-version", "3"], "SchemaExportCommand"),
            (["token", "update", "0f", "--every-origin", "--label", ""], "TokenUpdateCommand"),
            (["key", "update", "0f", "--label", "l"], "KeyUpdateCommand"),
            (["webhook", "deliveries", "w", "--json"], "WebhookDeliveriesCommand"),
            (["job", "count", "--type", "T", "--filter", "a = 1", "--no-wait"], "JobCountCommand"),
            (["job", "export", "--type", "T", "--format", "lines", "-o", "x.jsonl"], "JobExportCommand"),
            (["job", "delete", "--type", "T", "--all", "--confirm", "c"], "JobDeleteCommand"),
            (["job", "delete", "--type", "T", "--filter", "a = 1", "--confirm", "c"], "JobDeleteCommand"),
            (["job", "list", "--all"], "JobListCommand"), (["job", "show", "1-0", "--wait"], "JobShowCommand"),
            (["job", "result", "1-0"], "JobResultCommand"), (["job", "cancel", "1-0"], "JobCancelCommand"),
            (["subscription", "create", "s", "--zone", "A"], "SubscriptionCreateCommand"),
            (["subscription", "create", "s", "--type-of-record", "T", "--once"], "SubscriptionCreateCommand"),
            (["subscription", "delete", "s"], "SubscriptionDeleteCommand"),
            (["notifications", "watch", "--since", "AAA=", "--count", "2"], "NotificationsWatchCommand"),
            (["cluster", "health", "--json"], "ClusterHealthCommand"), (["usage", "--types"], "UsageCommand"),
            (["user", "unlock", "ada"], "UserUnlockCommand"),
            (["role", "explain", "ada"], "RoleExplainCommand"), (["role", "explain"], "RoleExplainCommand"),
            (["usage", "--days", "--json"], "UsageCommand"), (["alerts", "--rules"], "AlertsCommand"),
            (["limits", "set", "--cluster", "alertErrorPercent=5", "alertClockMilliseconds=0"], "LimitsSetCommand"),
            (["requests", "list", "--trace", "4bf92f3577b34da6a3ce929d0e0e4736"], "RequestsListCommand"),
            (["serve", "--trace-sample", "0.01", "--trace-folder", "t", "--trace-megabytes", "8"], "ServeCommand"),
            (["serve", "--request-log-megabytes", "0"], "ServeCommand"),
            (["serve", "--origin", "https://zk.example.com:8443"], "ServeCommand"),
            (["serve", "--connections-max", "20000", "--connections-per-address-max", "600"], "ServeCommand"),
        ])
    func known(arguments: [String], type: String) throws {
        #expect("\(Swift.type(of: try Zonekeeper.parseAsRoot(arguments)))" == type)
        #expect(CommandWords.problem(arguments) == nil)
    }

    @Test("A word that is no command is told of with what may be meant, and options that are not alike are not guessed")
    func unknownWords() {
        #expect(
            CommandWords.problem(["recrod", "query"])
                == "there is no command `zonekeeper recrod`: is `zonekeeper record` meant? `zonekeeper help` lists those that "
                + "there are")
        #expect(
            CommandWords.problem(["help", "record", "nosuch"])
                == "there is no command `zonekeeper record nosuch`: `zonekeeper help record` lists those that there are"
        )
        for known in [["--version"], ["help"], ["record", "--help"], ["kv", "get", "recrod"]] {
            #expect(CommandWords.problem(known) == nil)
        }
        let near = "error: Unknown option '--rol'. Did you mean '--role'?\nUsage"
        #expect(CommandWords.withoutFarGuess(near) == near)
        #expect(
            CommandWords.withoutFarGuess("error: Unknown option '--role'. Did you mean '--url'?\nUsage")
                == "error: Unknown option '--role'\nUsage")
    }

    @Test(
        "What is missing or does not go together is refused before anything is sent",
        arguments: [
            ["schema", "import"], ["schema", "import", "x", "--validate", "--dry-run"],
            ["schema", "import", "x", "--validate", "--allow-data-loss"],
            ["schema", "import", "x", "--additive", "--revoke-grants"], ["schema", "reset"],
            ["schema", "add-index", "c", "T", "f"], ["schema", "add-index", "c", "T", "f", "FAST"],
            ["zone", "create"], ["zone", "delete"], ["record", "changes"], ["act-as", "start", "ada"],
            ["act-as", "start", "ada", "--reason", "r", "--minutes", "16"], ["container", "describe", "c"],
            ["record", "versions"], ["record", "restore", "--version", "1.2"],
            ["token", "update", "0f"], ["token", "update", "0f", "--every-origin", "--origin", "https://a.b"],
            ["token", "update", "0f", "--origin", "a.b"], ["key", "update", "0f"], ["schema", "restore"],
            ["record", "changes", "--zone", "A", "--from-start", "--token", "x"], ["user", "update", "ada"],
            ["user", "update", "--email", "x"], ["container", "delete", "c"],
            ["container", "delete", "c", "--confirm", "d"], ["container", "restore"],
            ["asset", "get", "r"], ["asset", "get", "r", "f", "--number", "0"],
            ["subscription", "create"], ["subscription", "delete"], ["subscription", "list", "--all", "--user", "ada"],
            ["serve", "--connections-max", "0"], ["serve", "--data", ""], ["serve", "--certs", ""],
            ["certs", "create", "--directory", "", "--node", "1"], ["certs", "renew", "--directory", ""],
            ["backup", "--data", "d", "--to", ""], ["restore", "--data", "", "--from", "b"],
            ["serve", "--connections-per-address-max", "x"], ["serve", "--trace-sample", "1.5"],
            ["serve", "--origin", "http://zk.example.com"], ["serve", "--origin", "https://zk.example.com/a"],
            ["serve", "--request-log-megabytes", "x"], ["serve", "--trace-folder", "t"],
            ["serve", "--trace-sample", "0", "--trace-megabytes", "1"],
            ["usage", "--types", "--days"], ["usage", "--export", "xml"], ["usage", "--export", "csv", "--verify"],
            ["usage", "--output", "a.csv"], ["audit", "export", "--format", "json"],
            ["asset", "stat"], ["record", "save", "--type", "T", "photo:ASSET=x"], ["job", "count"],
            ["job", "count", "--type", "T", "--filter", "a ~ 1"], ["job", "show"],
            ["job", "export", "--type", "T", "--format", "xml"],
            ["job", "export", "--type", "T", "--no-wait", "-o", "x"], ["job", "delete", "--type", "T", "--all"],
            ["job", "delete", "--type", "T", "--confirm", "c"],
            ["job", "delete", "--type", "T", "--all", "--filter", "a = 1", "--confirm", "c"],
            ["kv", "set", "theme", "null", "--type", "JSON"],
        ])
    func refused(arguments: [String]) {
        #expect(throws: (any Error).self) { try Zonekeeper.parseAsRoot(arguments) }
    }

    @Test("A job is told with what it did, what it left and what it waits for; a lost one with why")
    func jobs() throws {
        let job = try json(
            #"{"id":"1-0","state":"running","kind":"delete","records":1,"left":2,"waiting":"no leader"}"#)
        #expect(JobText.progress(job) == "1 record deleted, 2 left (waits: no leader)")
        let failed = try json(
            #"{"id":"1-0","state":"failed","kind":"count","records":200,"left":0,"#
                + #""problem":{"code":"ACCESS_DENIED","reason":"no role"}}"#)
        #expect(JobText.state(failed) == "failed, 200 records counted: ACCESS_DENIED: no role")
        let lost = try json(
            #"{"id":"1-0","node":1,"state":"lost","problem":{"code":"NOT_FOUND","reason":"node 1 was started anew"}}"#)
        #expect(JobText.state(lost) == "lost: NOT_FOUND: node 1 was started anew")
    }

    @Test("Restoring saves what a version had, clears what came since, and creates what is deleted")
    func restoring() throws {
        let version = try json(
            #"{"recordName":"a","recordType":"T","fields":{"text":{"value":"x","type":"STRING"}},"#
                + #""recordChangeTag":"1.1","modified":{"timestamp":0}}"#)
        let present = try json(
            #"{"recordName":"a","recordType":"T","fields":{"text":{"value":"y"},"more":{"value":1}},"#
                + #""parent":{"recordName":"p"},"recordChangeTag":"1.2"}"#)
        #expect(
            try EarlierVersions.operation(saving: version, over: present)
                == json(
                    #"{"operationType":"update","record":{"recordName":"a","recordType":"T","recordChangeTag":"1.2","#
                        + #""parent":null,"fields":{"text":{"value":"x","type":"STRING"},"more":null}}}"#))
        #expect(
            try EarlierVersions.operation(saving: version, over: nil)
                == json(
                    #"{"operationType":"create","record":{"recordName":"a","recordType":"T","#
                        + #""fields":{"text":{"value":"x","type":"STRING"}}}}"#))
    }

    @Test("The lines of an export are imported: the name, the parent and the fields, but no files")
    func exportedLine() throws {
        let line = try json(
            #"{"recordName":"a","recordType":"T","fields":{"text":{"value":"x","type":"STRING"},"#
                + #""photo":{"value":{"size":1},"type":"ASSETID"}},"recordChangeTag":"1","#
                + #""parent":{"recordName":"p"}}"#)
        let read = try FieldsObject(line)
        #expect(read.recordName == "a")
        #expect(read.parent == (try json(#"{"recordName":"p"}"#)))
        #expect(read.fields == (try json(#"{"text":{"value":"x","type":"STRING"}}"#)))
        let plain = try FieldsObject(try json(#"{"recordType":"a word","text":"x","parent":"y"}"#))
        #expect(plain.parent == nil && plain.fields["parent"]?["value"]?.string == "y")
        #expect(plain.fields["recordType"]?["value"]?.string == "a word")
        #expect(plain.fields["text"]?["value"]?.string == "x")
    }

    @Test("A plan is told step by step, with what each does besides, and what stays")
    func plans() throws {
        let plan = try json(
            #"{"environment":"production","version":4,"changes":[{"change":"add role R","losesData":false},"#
                + #"{"change":"add index QUERYABLE on T.f","consequence":"it is built","losesData":false}],"#
                + #""kept":[{"change":"remove field T.g"}]}"#)
        #expect(
            SchemaPlanReport(plan, isDryRun: false, showsKept: true).text == """
                add role R
                add index QUERYABLE on T.f (it is built)
                not done, as production keeps what it has: remove field T.g
                the production schema has version 4 now
                """)
        #expect(
            SchemaPlanReport(plan, isDryRun: true).text == """
                would add role R
                would add index QUERYABLE on T.f (it is built)
                nothing was changed (--dry-run)
                """)
        let losing = try json(
            #"{"version":4,"changes":[{"change":"remove field T.f","losesData":true,"records":1,"consequence":"gone"},"#
                + #"{"change":"remove record type U","losesData":true,"recordsMax":200000}],"kept":[]}"#)
        #expect(
            SchemaPlanReport(losing, isDryRun: true).steps == [
                "would remove field T.f: 1 record (gone)", "would remove record type U: at most 200,000 records",
            ])
        #expect(!SchemaPlanReport(plan, isDryRun: false, showsKept: true).keepsGrants)
        let kept = try json(
            #"{"environment":"production","version":4,"changes":[],"#
                + #""kept":[{"change":"revoke READ on T from _world","revokesGrant":true}]}"#)
        #expect(SchemaPlanReport(kept, isDryRun: false, showsKept: true).keepsGrants)
        #expect(!SchemaPlanReport(kept, isDryRun: false).keepsGrants, "asked for with --additive")
        let nothing = try json(#"{"version":4,"changes":[],"kept":[]}"#)
        #expect(SchemaPlanReport(nothing, isDryRun: false).text == "nothing to change: the schema is at version 4")
        #expect(SchemaPlanReport(nothing, isDryRun: true).text == "nothing to change: the schema is at version 4")
        let reset = try json(
            #"{"container":"c","version":4,"records":1200,"changes":[{"change":"add role R"}],"kept":[]}"#)
        #expect(
            SchemaResetCommand.text(reset, isDryRun: true) == """
                would delete the records of all users: 1,200 now
                would add role R
                nothing was changed (--dry-run)
                """)
    }

    @Test("A schema is shown with how far its indexes are built")
    func schemaText() throws {
        let state = try json(
            #"{"container":"c","environment":"development","version":7,"types":["#
                + #"{"name":"Empty","fields":[],"grants":[]},"#
                + #"{"name":"Note","fields":[{"name":"a","type":"STRING","indexes":["#
                + #"{"index":"QUERYABLE","ready":true,"done":0,"total":0},"#
                + #"{"index":"SEARCHABLE","ready":false,"done":999,"total":1000}]},"#
                + #"{"name":"b","type":"LIST<INT64>","indexes":[{"index":"QUERYABLE","ready":false,"done":0,"total":0}]}],"#
                + #""grants":[{"role":"_creator","permissions":["WRITE"]},{"role":"_world","permissions":["READ"]}]}]}"#
        )
        #expect(
            try SchemaText.text(state, types: ["Note"]) == """
                c, development, version 7

                Note  (WRITE to _creator; READ to _world)
                  FIELD  TYPE         INDEXES
                  a      STRING       QUERYABLE, SEARCHABLE (building, 99%)
                  b      LIST<INT64>  QUERYABLE (building)
                """)
        #expect(try SchemaText.text(state, types: []).contains("Empty\n  (no fields)"))
        let error = #expect(throws: CommandFailure.self) { try SchemaText.text(state, types: ["Nothing"]) }
        #expect(error?.message == "the schema has no record type 'Nothing'; it has Empty, Note")
    }

    @Test("A feed is told change by change")
    func changes() throws {
        let records = try json(
            #"[{"recordName":"r","recordType":"Note","recordChangeTag":"1.2","modified":{"timestamp":0},"#
                + #""fields":{"a":{"value":"x","type":"STRING"},"n":{"value":3,"type":"INT64"}}},"#
                + #"{"recordName":"s","recordType":null,"deleted":true,"recordChangeTag":"1.3"}]"#)
        #expect(
            ChangesTable.text(records.array ?? []) == """
                CHANGE   RECORD NAME  TYPE  TAG  MODIFIED              FIELDS
                saved    r            Note  1.2  1970-01-01T00:00:00Z  a=x n=3
                deleted  s                  1.3
                """)
    }
}
