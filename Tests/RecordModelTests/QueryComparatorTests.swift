import Testing

@testable import RecordModel

@Suite("Comparators of records/query, each on each type")
struct QueryComparatorTests {
    /// A field of each type, alone and as a list, with every index that goes with it.
    private static let type: RecordType = {
        var fields: [FieldDefinition] = []
        for scalar in ScalarType.allCases {
            for isList in [false, true] {
                let type = FieldType(scalar, isList: isList)
                var indexes: IndexOptions = []
                for option in IndexOptions.named where SchemaRules.problem(indexes: option.option, on: type) == nil {
                    indexes.formUnion(option.option)
                }
                let name = scalar.rawValue + (isList ? "_LIST" : "")
                fields.append(FieldDefinition(name: name, type: type, indexes: indexes))
            }
        }
        for system in SystemField.allCases {
            fields.append(
                FieldDefinition(name: system.rawValue, type: system.type, indexes: [.queryable, .sortable]))
        }
        return RecordType(name: "T", fields: fields)
    }()

    /// A value of each type as JSON.
    private static let values: [ScalarType: String] = [
        .string: #""a""#, .int64: "1", .double: "1.5", .timestamp: "7", .bytes: #""Zg==""#,
        .location: #"{"latitude":1,"longitude":2}"#, .reference: #"{"recordName":"r","action":"VALIDATE"}"#,
        .asset: #"{"receipt":"x"}"#, .number: "2",
    ]

    private func filter(
        _ field: String?, _ comparator: Comparator, _ value: String, more: String = "", in type: RecordType = Self.type
    ) throws(ServiceError) -> Filter? {
        let name = field.map { "\"fieldName\":\"\($0)\"," } ?? ""
        let text = "{\(name)\"comparator\":\"\(comparator.rawValue)\",\"fieldValue\":{\"value\":\(value)}\(more)}"
        let body = "{\"query\":{\"recordType\":\"T\",\"filterBy\":[\(text)]}}"
        return try QueryRecordsRequest(body: Array(body.utf8)).query.resolve(schema: type, container: "iCloud.a")
            .filters.first
    }

    private func reason(
        _ field: String?, _ comparator: Comparator, _ value: String, more: String = "", in type: RecordType = Self.type
    ) -> String {
        do throws(ServiceError) {
            let filter = try filter(field, comparator, value, more: more, in: type)
            Issue.record("taken as \(String(describing: filter))")
            return ""
        } catch {
            #expect(error.code == .badRequest)
            return error.reason
        }
    }

    /// What each comparator takes, said once more: the field's types, whether it is a list, whether the value is one.
    private func rule(_ comparator: Comparator) -> (types: [ScalarType], isListField: Bool?, isListValue: Bool) {
        let ordered: [ScalarType] = [.string, .int64, .double, .timestamp, .bytes, .number]
        switch comparator.rawValue.replacing("NOT_", with: "") {
        case "EQUALS": return (ordered + [.reference], false, false)
        case "IN": return (ordered + [.reference], false, true)
        case "BEGINS_WITH": return ([.string], false, false)
        case "NEAR": return ([.location], false, false)
        case "LIST_CONTAINS": return (ordered + [.reference], true, false)
        case "LIST_CONTAINS_ALL", "LIST_CONTAINS_ANY": return (ordered + [.reference], true, true)
        case "LIST_MEMBER_BEGINS_WITH": return ([.string], true, false)
        case "CONTAINS_ALL_TOKENS", "CONTAINS_ANY_TOKENS": return ([.string], nil, false)
        default: return (ordered, false, false)
        }
    }

    @Test("each comparator takes exactly the fields that it makes sense for", arguments: Comparator.allCases)
    func matrix(comparator: Comparator) throws {
        let (types, isListField, isListValue) = rule(comparator)
        for scalar in ScalarType.allCases {
            for isList in [false, true] {
                let name = scalar.rawValue + (isList ? "_LIST" : "")
                let value = try #require(Self.values[scalar])
                let text = isListValue ? "[\(value),\(value)]" : value
                let isTaken = types.contains(scalar) && (isListField == nil || isListField == isList)
                guard isTaken else {
                    let reason = reason(name, comparator, text, more: ",\"distance\":5")
                    #expect(reason.hasPrefix("query.filterBy[0]: ") && !reason.contains("not marked"), "\(reason)")
                    continue
                }
                let filter = try #require(try filter(name, comparator, text, more: ",\"distance\":5"))
                #expect(filter.field == name && filter.comparator == comparator)
                #expect(filter.value.type.isList == isListValue, "\(name)")
                #expect(filter.value.type.scalar == (scalar == .number ? .int64 : scalar), "\(name)")
                #expect(filter.distance == (comparator == .near ? 5 : nil))
                // A list where one value is wanted, and the other way round.
                #expect(reason(name, comparator, isListValue ? value : "[\(value)]", more: ",\"distance\":5") != "")
            }
        }
    }

    @Test("values that comparators of lists take have the type of the members")
    func listValues() throws {
        #expect(try filter("STRING_LIST", .listContains, #""a""#)?.value == .string("a"))
        #expect(
            try filter("TIMESTAMP_LIST", .listContainsAll, "[7,8]")?.value
                == .list(.timestamp, [.timestamp(7), .timestamp(8)]))
        #expect(try filter("BYTES", .in, #"["Zg==",""]"#)?.value == .list(.bytes, [.bytes([102]), .bytes([])]))
        #expect(try filter("REFERENCE_LIST", .listContains, #""r""#)?.value == .reference(Reference(recordName: "r")))
        #expect(
            try filter("REFERENCE", .equals, #"{"recordName":"r","action":"DELETE_SELF"}"#)?.value
                == .reference(Reference(recordName: "r")))
        #expect(try filter("DOUBLE_LIST", .listContainsAny, "[]")?.value == .list(.double, []))
    }

    @Test("system fields take references whatever zone they name, other fields those of the zone searched")
    func zones() throws {
        let elsewhere = #"{"recordName":"r","zoneID":{"zoneName":"Z"}}"#
        for name in ["___recordID", "___createdBy", "___parent"] {
            let body =
                "{\"query\":{\"recordType\":\"T\",\"filterBy\":[{\"fieldName\":\"\(name)\",\"comparator\":\"EQUALS\","
                + "\"fieldValue\":{\"value\":\(elsewhere)}}]}}"
            let query = try QueryRecordsRequest(body: Array(body.utf8)).query
            let resolved = try query.resolve(schema: Self.type, zone: ZoneID(name: "Notes"), container: "iCloud.a")
            #expect(resolved.filters[0].value == .reference(Reference(recordName: "r")))
            let own = try QueryRecordsRequest(body: Array(body.replacing(name, with: "REFERENCE").utf8)).query
            #expect(throws: ServiceError.self) {
                try own.resolve(schema: Self.type, zone: ZoneID(name: "Notes"), container: "iCloud.a")
            }
            let wide = try own.resolve(schema: Self.type, container: "iCloud.a")
            #expect(wide.filters[0].value == .reference(Reference(recordName: "r", zone: ZoneID(name: "Z"))))
        }
    }

    @Test("lists of values are bounded", arguments: [Comparator.in, .notIn, .listContainsAll, .listContainsAny])
    func listMax(comparator: Comparator) throws {
        let field = comparator == .in || comparator == .notIn ? "INT64" : "INT64_LIST"
        func values(_ count: Int) -> String { "[\(Array(repeating: "1", count: count).joined(separator: ","))]" }
        #expect(try filter(field, comparator, values(249)) != nil && filter(field, comparator, values(250)) != nil)
        #expect(reason(field, comparator, values(251)).contains("251 members given, at most 250"))
    }

    @Test(
        "NEAR needs a distance above 0",
        arguments: [
            "", ",\"distance\":0", ",\"distance\":-1", ",\"distance\":\"x\"", ",\"distance\":null",
            ",\"distance\":true",
        ])
    func noDistance(more: String) {
        let reason = reason("LOCATION", .near, #"{"latitude":1,"longitude":2}"#, more: more)
        #expect(reason.contains("query.filterBy[0].distance: "), "\(reason)")
    }

    @Test("distances and centres", arguments: [("5", 5.0), ("0.001", 0.001), ("1e7", 1e7), ("\"25.5\"", 25.5)])
    func near(text: String, metres: Double) throws {
        let filter = try filter("LOCATION", .near, #"{"latitude":-90,"longitude":180}"#, more: ",\"distance\":\(text)")
        #expect(filter?.distance == metres && filter?.value == .location(Location(latitude: -90, longitude: 180)))
    }

    @Test("words are looked for in one field, or in all that can be searched")
    func tokens() throws {
        for comparator in [Comparator.containsAllTokens, .containsAnyTokens] {
            for name in [nil, "self", "___self"] {
                #expect(
                    try filter(name, comparator, #""a b*""#)
                        == Filter(field: nil, comparator: comparator, value: .string("a b*")))
            }
            #expect(try filter("STRING_LIST", comparator, #""a""#)?.field == "STRING_LIST")
            #expect(
                reason(nil, comparator, "7").hasPrefix(
                    "Invalid value, expected type STRING. query.filterBy[0].fieldValue.value"))
        }
        let bare = RecordType(
            name: "T", fields: [FieldDefinition(name: "s", type: FieldType(.string), indexes: .queryable)])
        #expect(
            reason("s", .containsAllTokens, #""a""#, in: bare)
                == "Field 's' is not marked searchable. query.filterBy[0]: this needs the index SEARCHABLE on field s of "
                + "record type T; add it with `zonekeeper schema add-index iCloud.a T s SEARCHABLE`")
        #expect(
            reason(nil, .containsAnyTokens, #""a""#, in: bare).contains(
                "`zonekeeper schema add-index iCloud.a T s SEARCHABLE`"))
        #expect(reason(nil, .containsAnyTokens, #""a""#, in: RecordType(name: "T")).contains("nor a STRING field"))
        #expect(reason(nil, .equals, #""a""#).hasPrefix("query.filterBy[0].fieldName: is missing"))
        #expect(reason("self", .equals, #""a""#).contains("has no field 'self'"))
    }

    @Test("each index serves what it is for, and no other does")
    func indexes() throws {
        let needs: [(Comparator, String, String, String)] = [
            (.equals, "STRING", #""a""#, "queryable"), (.in, "STRING", #"["a"]"#, "queryable"),
            (.beginsWith, "STRING", #""a""#, "queryable"), (.lessThan, "STRING", #""a""#, "sortable"),
            (.greaterThanOrEquals, "BYTES", #""Zg==""#, "sortable"),
            (.containsAllTokens, "STRING", #""a""#, "searchable"),
            (.listContains, "STRING_LIST", #""a""#, "queryable"),
            (.listMemberBeginsWith, "STRING_LIST", #""a""#, "queryable"),
            (.near, "LOCATION", #"{"latitude":1,"longitude":2}"#, "queryable"),
            (.equals, "___createdBy", #""_u""#, "queryable"), (.equals, "___parent", #""p""#, "queryable"),
        ]
        for (comparator, name, value, word) in needs {
            for (other, option) in IndexOptions.named {
                var type = Self.type
                let position = try #require(type.fields.firstIndex { $0.name == name })
                type.fields[position].indexes = option
                if other.lowercased() == word {
                    #expect(try filter(name, comparator, value, more: ",\"distance\":1", in: type) != nil)
                } else {
                    let reason = reason(name, comparator, value, more: ",\"distance\":1", in: type)
                    #expect(reason.hasPrefix("Field '\(QueryField.webName(name))' is not marked \(word). "))
                    #expect(reason.hasSuffix("`zonekeeper schema add-index iCloud.a T \(name) \(word.uppercased())`"))
                }
            }
        }
    }

    private func sort(_ sort: String, in type: RecordType = Self.type) throws -> Sort? {
        let body = "{\"query\":{\"recordType\":\"T\",\"sortBy\":[\(sort)]}}"
        return try QueryRecordsRequest(body: Array(body.utf8)).query.resolve(schema: type, container: "iCloud.a").sorts
            .first
    }

    @Test("a place sorts by its distance from another, given bare or as a value")
    func distanceSort() throws {
        let place = #"{"latitude":1,"longitude":2}"#
        let wanted = Sort(field: "LOCATION", isAscending: false, relativeLocation: Location(latitude: 1, longitude: 2))
        for text in [place, "{\"value\":\(place)}", "{\"value\":\(place),\"type\":\"LOCATION\"}"] {
            #expect(try sort("{\"fieldName\":\"LOCATION\",\"ascending\":false,\"relativeLocation\":\(text)}") == wanted)
        }
        func reason(_ text: String) -> String? {
            do {
                _ = try sort(text)
                return nil
            } catch { return (error as? ServiceError)?.reason }
        }
        #expect(reason(#"{"fieldName":"LOCATION"}"#)?.contains("give a relativeLocation") == true)
        for name in ["STRING", "LOCATION_LIST", "___createTime"] {
            #expect(
                reason("{\"fieldName\":\"\(name)\",\"relativeLocation\":\(place)}")?.contains("only a LOCATION has")
                    == true)
        }
        for text in [#"{"latitude":91,"longitude":2}"#, "7", "{}", #"{"value":"x"}"#] {
            let reason = reason("{\"fieldName\":\"LOCATION\",\"relativeLocation\":\(text)}")
            #expect(reason?.contains("query.sortBy[0].relativeLocation") == true, "\(text)")
        }
    }

    @Test("every scalar but a place and an asset has an order; lists have none")
    func sorts() throws {
        for field in Self.type.fields where field.name != "___etag" {
            let isTaken = !field.type.isList && ![.location, .asset].contains(field.type.scalar)
            let isSorted = (try? sort("{\"fieldName\":\"\(field.name)\"}")) != nil
            #expect(isSorted == isTaken, "\(field.name)")
        }
    }

    @Test("the records of users cannot be queried, nor encrypted fields")
    func refused() throws {
        let users = #"{"query":{"recordType":"Users"}}"#
        let query = try QueryRecordsRequest(body: Array(users.utf8)).query
        let error = #expect(throws: ServiceError.self) { try query.resolve(schema: .users, container: "iCloud.a") }
        #expect(
            error?.code == .badRequest
                && error?.reason.hasPrefix("Can't query system types. query.recordType: ") == true)
        let type = RecordType(
            name: "T",
            fields: [FieldDefinition(name: "s", type: FieldType(.string, isEncrypted: true), indexes: .queryable)])
        for comparator in [Comparator.equals, .beginsWith, .containsAllTokens] {
            #expect(reason("s", comparator, #""a""#, in: type).contains("encrypted fields cannot be searched"))
        }
        #expect(reason("___share", .equals, #""a""#).contains("sharing is not built yet"))
    }

    @Test("a client may ask how its query was run")
    func explain() throws {
        let query = #"{"query":{"recordType":"T"}"#
        #expect(try QueryRecordsRequest(body: Array("\(query),\"explain\":true}".utf8)).explains)
        #expect(try !QueryRecordsRequest(body: Array("\(query)}".utf8)).explains)
    }
}
