import RecordModel

/// Requests that are well formed more often than not: each member has the value it should have, another, or none.
extension FuzzRandom {
    /// An object of members, of which some are left out, null, or something else.
    private mutating func object(_ members: [(String, JSONValue)]) -> JSONValue {
        var kept: [JSONValue.Member] = []
        for (key, value) in members {
            switch below(60) {
            case 0: break
            case 1: kept.append(.init(key, .null))
            case 2: kept.append(.init(key, json(depth: 2)))
            case 3: kept.append(.init("\(key)x", value))
            default: kept.append(.init(key, value))
            }
        }
        return .object(kept)
    }

    private mutating func some(_ percent: Int, _ member: (String, JSONValue)) -> [(String, JSONValue)] {
        chance(percent) ? [member] : []
    }

    private mutating func list(_ bound: Int, _ member: (inout FuzzRandom) -> JSONValue) -> JSONValue {
        .array((0..<below(bound)).map { _ in member(&self) })
    }

    private mutating func names() -> JSONValue { list(4) { .string($0.name()) } }

    mutating func zoneID() -> JSONValue {
        object(
            [("zoneName", .string(pick(["_defaultZone", "Notes", "Z"])))]
                + some(20, ("ownerRecordName", .string(pick(["_u", "__defaultOwner__"]))))
                + some(10, ("zoneType", .string("X"))))
    }

    private mutating func place() -> JSONValue {
        var members: [(String, JSONValue)] = [
            ("latitude", .integer(Int64(below(200) - 100))), ("longitude", .number(Double(below(400) - 200))),
        ]
        for key in ["horizontalAccuracy", "verticalAccuracy", "altitude", "speed", "course"] {
            members += some(20, (key, chance(50) ? .number(double()) : .string(String(below(99)))))
        }
        return object(members + some(20, ("timestamp", .integer(integer()))))
    }

    private mutating func scalarJSON() -> JSONValue {
        switch below(10) {
        case 0: .integer(integer())
        case 1: .number(double())
        case 2: .bool(chance(50))
        case 3: .string(String(integer()))
        case 4: .string(Base64.encode(bytes(9)))
        case 5: place()
        case 6:
            object(
                [("recordName", .string("r\(below(4))"))]
                    + some(50, ("action", .string(pick(["NONE", "DELETE_SELF", "VALIDATE", "?"]))))
                    + some(20, ("zoneID", zoneID())))
        case 7: .object([.init("fileChecksum", .string("x"))])
        default: .string(text())
        }
    }

    private static let typeNames = [
        "STRING", "INT64", "DOUBLE", "TIMESTAMP", "BYTES", "LOCATION", "REFERENCE", "ASSETID", "NUMBER_INT64",
        "STRING_LIST",
        "INT64_LIST", "LOCATION_LIST", "UNKNOWN_LIST", "ENCRYPTED_BYTES", "ENCRYPTED_STRING_LIST", "LIST", "",
    ]

    /// `{value, type}`.
    mutating func fieldInput() -> JSONValue {
        let value = chance(25) ? list(4) { $0.scalarJSON() } : scalarJSON()
        return object(
            [("value", value)] + some(30, ("type", .string(pick(Self.typeNames))))
                + some(8, ("isEncrypted", .bool(true))))
    }

    private mutating func operation() -> JSONValue {
        let fields = (0..<below(5)).map { _ in (name(), fieldInput()) }
        var seen: Set<String> = []
        let record = object(
            [
                ("recordName", .string(chance(95) ? "r\(below(10_000))" : "_u")),
                ("recordType", .string(pick(["Note", "Note", "CD_Item", "Users", "New", "cloudkit.share"]))),
                ("recordChangeTag", .string("1.2")),
                ("fields", object(fields.filter { seen.insert($0.0).inserted })),
            ] + some(10, ("parent", chance(20) ? .null : .object([.init("recordName", .string("p"))])))
                + some(3, ("createShortGUID", .bool(chance(50)))))
        let kinds = RecordOperation.Kind.allCases
        return object([("operationType", .string(pick(kinds).rawValue)), ("record", record)])
    }

    private mutating func common() -> [(String, JSONValue)] {
        some(30, ("zoneID", zoneID())) + some(20, ("desiredKeys", names()))
            + some(20, ("numbersAsStrings", .bool(true)))
            + some(20, ("resultsLimit", .integer(Int64(below(400)))))
    }

    mutating func modifyRequest() -> JSONValue {
        object([("operations", list(4) { $0.operation() })] + common() + some(20, ("atomic", .bool(chance(50)))))
    }

    mutating func queryRequest() -> JSONValue {
        let filters = list(4) { random in
            let comparator = random.pick(Comparator.allCases).rawValue
            return random.object(
                [("comparator", .string(comparator)), ("fieldValue", random.fieldInput())]
                    + random.some(90, ("fieldName", .string(random.chance(80) ? random.name() : "___parent")))
                    + random.some(5, ("systemFieldName", .string("recordName")))
                    + random.some(comparator == "NEAR" ? 90 : 5, ("distance", .number(random.double()))))
        }
        let sorts = list(3) { random in
            random.object(
                [("fieldName", .string(random.chance(80) ? random.name() : "___modTime"))]
                    + random.some(30, ("ascending", .bool(random.chance(50))))
                    + random.some(15, ("relativeLocation", .object([.init("value", random.place())]))))
        }
        let query = object([
            ("recordType", .string(pick(["Note", "Note", "Users"]))), ("filterBy", filters), ("sortBy", sorts),
        ])
        return object(
            [("query", query)] + common() + some(10, ("zoneWide", .bool(true))) + some(5, ("explain", .bool(true))))
    }

    mutating func lookupRequest() -> JSONValue {
        let records = list(5) { $0.object([("recordName", .string("r")), ("desiredKeys", $0.names())]) }
        return object([("records", records)] + common())
    }

    mutating func zonesRequest() -> JSONValue {
        let operations = list(4) { random in
            let zone = random.object([("zoneID", random.zoneID())])
            return random.object([("operationType", .string(random.pick(["create", "delete"]))), ("zone", zone)])
        }
        return object([("operations", operations), ("zones", list(4) { $0.zoneID() })])
    }

    mutating func changesRequest() -> JSONValue {
        func members(_ random: inout FuzzRandom) -> [(String, JSONValue)] {
            random.common() + random.some(50, ("syncToken", .string(Base64.encode(random.bytes(9)))))
                + random.some(20, ("metaSyncToken", .string("")))
                + random.some(20, ("desiredRecordTypes", random.names()))
                + random.some(20, ("reverse", .bool(random.chance(50))))
        }
        let zones = list(4) { random in random.object([("zoneID", random.zoneID())] + members(&random)) }
        return object([("zones", zones)] + members(&self))
    }

    /// A body of push or tokens.
    mutating func pushRequest() -> JSONValue {
        object(
            [("apnsEnvironment", .string(pick(["development", "production"])))]
                + some(50, ("apnsToken", .string(text()))) + some(50, ("clientId", .string(text())))
                + some(50, ("syncToken", .string(Base64.encode(bytes(9)))))
                + some(30, ("resultsLimit", .integer(Int64(below(400)))))
                + some(30, ("timeout", .integer(integer()))))
    }

    mutating func subscriptionsRequest() -> JSONValue {
        func subscription(_ random: inout FuzzRandom) -> JSONValue {
            let info = random.object([
                ("alertBody", .string(random.text())), ("additionalFields", random.names()),
                ("alertLocalizationArgs", random.names()), ("shouldBadge", .bool(random.chance(50))),
            ])
            let events = random.list(4) { .string($0.pick(["create", "update", "delete"])) }
            return random.object(
                [
                    ("subscriptionID", .string("s\(random.below(9_999))")),
                    ("subscriptionType", .string(random.pick(["query", "zone", "database", "Query"]))),
                ] + random.some(40, ("zoneID", random.zoneID())) + random.some(30, ("recordType", .string("Note")))
                    + random.some(60, ("query", random.queryRequest()["query"] ?? .null))
                    + random.some(60, ("firesOn", events))
                    + random.some(20, ("firesOnce", .bool(random.chance(50))))
                    + random.some(50, ("notificationInfo", info)))
        }
        let operations = list(4) { random in
            let kind = JSONValue.string(random.pick(["create", "update", "delete"]))
            return random.object([("operationType", kind), ("subscription", subscription(&random))])
        }
        return object([("operations", operations), ("subscriptions", list(4) { subscription(&$0) })])
    }

    mutating func usersRequest() -> JSONValue {
        let users = list(4) { random in
            random.object([(random.pick(["emailAddress", "phoneNumber", "userRecordName"]), .string("a@b.c"))])
        }
        return object([("users", users), ("lookupInfos", users)])
    }
}
