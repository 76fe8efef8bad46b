import Testing

@testable import RecordModel

@Suite("Schema plan")
struct SchemaPlanTests {
    private func parse(_ text: String) throws -> Schema { try SchemaParser.parse("DEFINE SCHEMA " + text) }

    private func plan(
        _ current: String, _ wanted: String, mode: SchemaPlan.Mode = .replace, protecting production: String = ""
    ) throws -> SchemaPlan {
        SchemaPlan(
            from: try parse(current), to: try parse(wanted), mode: mode, protecting: try parse(production))
    }

    @Test("Each change is said in words, additions first and roles removed last")
    func descriptions() throws {
        let current = """
            CREATE ROLE old; RECORD TYPE Gone (a INT64);
            RECORD TYPE Note (kept STRING QUERYABLE SORTABLE, lost INT64, n NUMBER, "___recordID" REFERENCE QUERYABLE,
                GRANT READ, WRITE TO "_world", GRANT READ TO old);
            """
        let wanted = """
            CREATE ROLE new; RECORD TYPE Fresh (b ASSET, c INT64); RECORD TYPE Bare ();
            RECORD TYPE Note (kept STRING SEARCHABLE SORTABLE, added LIST<STRING> QUERYABLE,
                n NUMBER PREFERRED AS DOUBLE,
                "___modTime" TIMESTAMP SORTABLE, GRANT READ, CREATE TO "_world", GRANT WRITE TO new);
            """
        let plan = try plan(current, wanted)
        #expect(plan.refusals.isEmpty)
        #expect(
            plan.changes.map(\.description) == [
                "add role new",
                "add record type Bare without fields",
                "add record type Fresh with fields b, c",
                "add index SORTABLE on Note.___modTime",
                "add field Note.added LIST<STRING> QUERYABLE",
                "add index SEARCHABLE on Note.kept",
                "prefer DOUBLE for Note.n",
                "grant CREATE on Note to _world",
                "grant WRITE on Note to new",
                "remove record type Gone and all records of it",
                "remove index QUERYABLE from Note.___recordID",
                "remove index QUERYABLE from Note.kept",
                "remove field Note.lost and its value in every record",
                "revoke WRITE on Note from _world",
                "revoke READ on Note from old",
                "remove role old",
            ])
        let result = plan.applied(to: try parse(current))
        let expected = try parse(wanted)
        #expect(result == expected)
        #expect(plan.changes.filter(\.losesData).count == 2)
    }

    @Test("Type, list-ness, encryption and a stated preference never change")
    func refusals() throws {
        let pairs = [
            ("a INT64", "a STRING", "the type of a field never changes"),
            ("a STRING", "a LIST<STRING>", "never becomes a list"),
            ("a LIST<STRING>", "a STRING", "ceases to be one"),
            ("a STRING", "a ENCRYPTED STRING", "encrypted never changes"),
            ("a ENCRYPTED STRING", "a STRING", "encrypted never changes"),
            ("a NUMBER PREFERRED AS INT64", "a NUMBER PREFERRED AS DOUBLE", "once stated, never changes"),
            ("a NUMBER PREFERRED AS INT64", "a NUMBER", "once stated, never changes"),
            ("a NUMBER", "a INT64", "the type of a field never changes"),
        ]
        for (current, wanted, reason) in pairs {
            for mode in [SchemaPlan.Mode.replace, .additive] {
                let plan = try plan("RECORD TYPE T (\(current));", "RECORD TYPE T (\(wanted));", mode: mode)
                #expect(plan.refusals.map(\.subject) == ["T.a"], "\(current) to \(wanted)")
                #expect(plan.refusals.first?.reason.contains(reason) == true, "\(current) to \(wanted)")
                #expect(plan.applied(to: try parse("RECORD TYPE T (\(current));")) == nil)
            }
        }
    }

    @Test("What is in production cannot be removed, what is only in development can")
    func protection() throws {
        let production = "RECORD TYPE Old (a INT64); RECORD TYPE T (a INT64);"
        let current = production + " RECORD TYPE New (a INT64);"
        let bad = try plan(current, "RECORD TYPE T (b INT64);", protecting: production)
        #expect(bad.refusals.map(\.subject) == ["Old", "T.a"])
        let changed = current.replacing("T (a INT64)", with: "T (a INT64, b INT64)")
        let good = try plan(changed, production, protecting: production)
        #expect(good.refusals.isEmpty)
        let result = good.applied(to: try parse(changed))
        let expected = try parse(production)
        #expect(result == expected)
    }

    @Test("An index may go although its field is in production")
    func indexes() throws {
        let production = "RECORD TYPE T (a INT64 QUERYABLE SORTABLE);"
        let plan = try plan(production, "RECORD TYPE T (a INT64 SORTABLE);", protecting: production)
        #expect(plan.refusals.isEmpty)
        #expect(plan.changes == [.removeIndex(type: "T", field: "a", .queryable)])
    }

    @Test("A plan performed on its schema gives the wanted one, and the plan from there is empty")
    func twin() throws {
        var bridged = 0
        for seed in 0..<400 {
            var random = SchemaRandom(seed: UInt64(seed))
            let current = RandomSchema.make(using: &random)
            var wanted = RandomSchema.make(using: &random)
            if random.chance(70) { alignTypes(of: &wanted, with: current) }
            let plan = SchemaPlan(from: current, to: wanted)
            #expect(plan.refusals.isEmpty == !typesDiffer(current, wanted), "seed \(seed)")
            guard plan.refusals.isEmpty else { continue }
            bridged += 1
            let result = try #require(plan.applied(to: current), "seed \(seed)")
            // `Users` stays where the wanted schema does not mention it, without grants to roles that go.
            if wanted.type(named: "Users") == nil, var users = current.type(named: "Users") {
                #expect(plan.kept == [.removeType("Users")], "seed \(seed)")
                users.grants.removeAll { !$0.role.hasPrefix("_") && !wanted.roles.contains($0.role) }
                wanted.types.append(users)
            }
            #expect(result == wanted.normalized, "seed \(seed)")
            #expect(SchemaPlan(from: result, to: wanted).isEmpty, "seed \(seed)")
        }
        #expect(bridged > 100)
    }

    @Test("An additive plan removes nothing and leaves nothing wanted out")
    func additive() throws {
        for seed in 0..<200 {
            var random = SchemaRandom(seed: UInt64(seed))
            let current = RandomSchema.make(using: &random)
            var wanted = RandomSchema.make(using: &random)
            alignTypes(of: &wanted, with: current)
            let plan = SchemaPlan(from: current, to: wanted, mode: .additive)
            #expect(plan.changes.allSatisfy { !$0.kind.hasPrefix("remove") }, "seed \(seed)")
            let result = try #require(plan.applied(to: current), "seed \(seed)")
            for part in [current, wanted] {
                // Nothing of either is missing: going there from the result only removes.
                let rest = SchemaPlan(from: result, to: part)
                let onlyRemoves = rest.changes.allSatisfy { $0.kind.hasPrefix("remove") }
                #expect(onlyRemoves, "seed \(seed)")
            }
        }
    }

    /// Gives fields that both schemas have the type, and so the indexes, that they have in the other.
    private func alignTypes(of wanted: inout Schema, with current: Schema) {
        for type in wanted.types.indices {
            for field in wanted.types[type].fields.indices {
                let name = wanted.types[type].fields[field].name
                guard let other = current.type(named: wanted.types[type].name)?.field(named: name) else { continue }
                wanted.types[type].fields[field].type = other.type
                wanted.types[type].fields[field].indexes = other.indexes
            }
        }
    }

    private func typesDiffer(_ current: Schema, _ wanted: Schema) -> Bool {
        current.types.contains { type in
            type.fields.contains { field in
                guard let other = wanted.type(named: type.name)?.field(named: field.name)?.type else { return false }
                if other == field.type { return false }
                return field.type.preferred != nil || other.preferred == nil
                    || FieldType(other.scalar, isList: other.isList, isEncrypted: other.isEncrypted) != field.type
            }
        }
    }

    @Test("A schema without Users leaves it as it is, one that takes its roles away is refused")
    func users() throws {
        let container = SchemaPrinter.print(.initial).replacing("DEFINE SCHEMA", with: "")
        let bare = try plan(container + "CREATE ROLE r; RECORD TYPE T (a INT64);", "RECORD TYPE T (a INT64);")
        #expect(bare.refusals.isEmpty && bare.changes == [.removeRole("r")] && bare.kept == [.removeType("Users")])
        let result = try #require(bare.applied(to: try parse(container + "CREATE ROLE r; RECORD TYPE T (a INT64);")))
        #expect(result == Schema(types: [.users, RecordType(name: "T", fields: result.types[0].fields)]).normalized)
        let robbed = try plan(container, "RECORD TYPE Users (nick STRING, GRANT READ TO \"_world\");")
        #expect(robbed.refusals.map(\.subject) == ["Users.roles"])
        let more = try plan(
            container, "RECORD TYPE Users (nick STRING, roles LIST<INT64>, GRANT READ TO \"_world\");")
        #expect(more.refusals.isEmpty && more.changes.count == 2)
        let additive = try plan(container, "RECORD TYPE Users (nick STRING);", mode: .additive)
        #expect(additive.refusals.isEmpty && additive.changes.count == 1)
    }

    @Test("An additive plan says what it keeps: a deploy takes no index and no grant away")
    func kept() throws {
        let production =
            "RECORD TYPE Old (); RECORD TYPE T (a INT64 QUERYABLE SORTABLE, GRANT READ, WRITE TO \"_world\");"
        let development = "RECORD TYPE T (a INT64 SORTABLE, b STRING SEARCHABLE, GRANT READ TO \"_world\");"
        let deploy = try plan(production, development, mode: .additive)
        #expect(deploy.changes.map(\.description) == ["add field T.b STRING SEARCHABLE"])
        #expect(
            deploy.kept.map(\.description) == [
                "remove record type Old and all records of it", "remove index QUERYABLE from T.a",
                "revoke WRITE on T from _world",
            ])
        let result = try #require(deploy.applied(to: try parse(production)))
        #expect(result.type(named: "T")?.field(named: "a")?.indexes == [.queryable, .sortable])
        #expect(SchemaPlan(from: result, to: try parse(development), mode: .additive).isEmpty)
    }

    @Test("An additive plan that revokes grants makes those of the types in the text equal, and keeps the rest")
    func revoked() throws {
        let production = """
            CREATE ROLE R; RECORD TYPE Old (a INT64, GRANT READ TO R);
            RECORD TYPE T (a INT64 QUERYABLE, GRANT READ, WRITE TO "_world", GRANT CREATE TO R);
            """
        let wanted = "RECORD TYPE T (b INT64, GRANT READ TO \"_world\");"
        let plan = try plan(production, wanted, mode: .additiveExceptGrants)
        #expect(
            plan.changes.map(\.description) == [
                "add field T.b INT64", "revoke CREATE on T from R", "revoke WRITE on T from _world",
            ])
        #expect(
            plan.kept.map(\.description) == [
                "remove record type Old and all records of it", "remove field T.a and its value in every record",
                "remove role R",
            ])
        let result = try #require(plan.applied(to: try parse(production)))
        #expect(result.type(named: "T")?.grants == [Grant(role: "_world", permissions: .read)])
        #expect(result.type(named: "Old")?.grants.count == 1 && result.roles == ["R"])
    }

    @Test("Steps say what they do beyond the schema")
    func consequences() throws {
        let plan = try plan(
            "RECORD TYPE Old (); RECORD TYPE T (a INT64 QUERYABLE, b INT64, n NUMBER);",
            "RECORD TYPE T (a INT64 SORTABLE, n NUMBER PREFERRED AS INT64);")
        let words = Dictionary(uniqueKeysWithValues: plan.changes.map { ($0.description, $0.consequence) })
        #expect(words["add index SORTABLE on T.a"]??.contains("built in the background") == true)
        #expect(words["remove index QUERYABLE from T.a"]??.contains("no record changes") == true)
        #expect(words["prefer INT64 for T.n"]??.contains("no INT64 exactly are not shown") == true)
        #expect(words["remove field T.b and its value in every record"]??.contains("gone for good") == true)
        #expect(words["remove record type Old and all records of it"]??.contains("gone for good") == true)
    }

    @Test("A plan that would make a schema of more than 1 MiB is refused, with both figures")
    func size() throws {
        func schema(_ count: Int) -> Schema {
            Schema(
                types: (0..<count).map { number in
                    RecordType(
                        name: "T\(number)",
                        fields: (0..<100).map {
                            let name = "f\($0)"
                            return FieldDefinition(
                                name: name + String(repeating: "x", count: 250 - name.utf8.count),
                                type: FieldType(.int64))
                        })
                })
        }
        let most = schema(40)
        #expect(SchemaPlan(from: Schema(), to: most).refusals.isEmpty && most.encodedSize < Limits.schemaBytesMax)
        let refusals = SchemaPlan(from: most, to: schema(41), mode: .additive).refusals.map(\.description)
        #expect(refusals.count == 1 && refusals[0].hasPrefix("schema: it would have \(schema(41).encodedSize) bytes"))
        #expect(refusals.first?.contains("at most 1048576") == true)
    }

    @Test("A plan that would exceed the limits is refused, at the limits it is not")
    func limits() throws {
        func schema(_ prefix: String, types: Int, fields: Int) -> Schema {
            let all = (0..<fields).map { FieldDefinition(name: "\(prefix)\($0)", type: FieldType(.int64)) }
            return Schema(
                types: (0..<types).map { RecordType(name: "\(prefix)\($0)") } + [RecordType(name: "T", fields: all)])
        }
        func refusals(_ current: Schema, _ wanted: Schema) -> [String] {
            SchemaPlan(from: current, to: wanted, mode: .additive).refusals.map(\.description)
        }
        let half = schema("a", types: 250, fields: 500)
        #expect(refusals(half, schema("b", types: 249, fields: 500)).isEmpty)
        #expect(
            refusals(half, schema("b", types: 250, fields: 501)) == [
                "schema: it would have 501 record types, at most 500", "T: it would have 1001 fields, at most 1000",
            ])
        #expect(SchemaPlan(from: half, to: schema("b", types: 499, fields: 1000)).refusals.isEmpty)
    }
}
