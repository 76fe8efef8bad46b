import Testing

@testable import RecordModel

@Suite("Requests to records/changes, changes/zone, changes/database, zones/changes and users")
struct ChangesRequestTests {
    private func zones(_ text: String) throws -> [ZoneChangesRequestForm.Item] {
        try ZoneChangesRequestForm(body: Array(text.utf8)).zones
    }

    @Test("what stands beside zones is the default of each of them")
    func defaults() throws {
        let body = #"""
            {"zones":[{"zoneID":{"zoneName":"A","zoneType":"X"},"deleted":false},{"zoneID":{"zoneName":"B"},"syncToken":"Qg==",
            "resultsLimit":7,"desiredKeys":[],"desiredRecordTypes":["U","cloudkit.share"],"reverse":false,
            "numbersAsStrings":false},
            {}],"zoneID":{"zoneName":"Z"},"syncToken":"QQ==","resultsLimit":500,"desiredKeys":["k"],
            "desiredRecordTypes":["T"],"reverse":true,"numberAsStrings":true,"unknown":{}}
            """#
        let zones = try zones(body)
        #expect(zones.map(\.zoneID.name) == ["A", "B", "Z"])
        #expect(zones.map(\.syncToken) == ["QQ==", "Qg==", "QQ=="])
        #expect(zones.map(\.resultsLimit) == [200, 7, 200])
        #expect(zones.map(\.desiredKeys) == [["k"], [], ["k"]])
        #expect(zones.map(\.desiredRecordTypes) == [["T"], ["U", "cloudkit.share"], ["T"]])
        #expect(zones.map(\.isReverse) == [true, false, true] && zones.map(\.numbersAsStrings) == [true, false, true])
    }

    @Test("an empty token is none, also where another stands beside zones")
    func emptyTokens() throws {
        let zone = #"{"zoneID":{"zoneName":"A"},"syncToken":""}"#
        #expect(try zones("{\"zones\":[\(zone)]}").map(\.syncToken) == [nil])
        #expect(try zones("{\"zones\":[\(zone)],\"syncToken\":\"QQ==\"}").map(\.syncToken) == [nil])
        #expect(try zones(#"{"zones":[]}"#).isEmpty)
        let bare = try zones(#"{"zones":[{"zoneID":{}}]}"#)
        #expect(bare.map(\.zoneID) == [ZoneID()] && bare[0].resultsLimit == 200 && bare[0].desiredRecordTypes == nil)
    }

    @Test("1 to 200 results are given as asked, more are capped, fewer refused", arguments: [1, 199, 200, 201, 9999])
    func resultsLimit(limit: Int) throws {
        let wanted = min(limit, 200)
        #expect(try zones("{\"zones\":[{\"zoneID\":{}}],\"resultsLimit\":\(limit)}")[0].resultsLimit == wanted)
        let zone = "{\"zoneID\":{},\"resultsLimit\":\(limit)}"
        #expect(try RecordChangesRequest(body: Array(zone.utf8)).resultsLimit == wanted)
        #expect(try DatabaseChangesForm(body: Array("{\"resultsLimit\":\(limit)}".utf8)).resultsLimit == wanted)
        #expect(try ZonesChangesForm(body: Array("{\"resultsLimit\":\(limit)}".utf8)).resultsLimit == wanted)
        let query = "{\"query\":{\"recordType\":\"T\"},\"resultsLimit\":\(limit)}"
        #expect(try QueryRecordsRequest(body: Array(query.utf8)).resultsLimit == wanted)
        #expect(
            reason { try zones("{\"zones\":[{\"zoneID\":{},\"resultsLimit\":0}]}") }
                == "zones[0].resultsLimit: expected 1 to 200, found 0")
    }

    @Test(
        "faults are named by their path",
        arguments: [
            ("{}", "zones: is missing"), (#"{"zones":[{}]}"#, "zones[0].zoneID: is missing"),
            (#"{"zones":[{"zoneID":"A"}]}"#, "zones[0].zoneID: expected an object, found a string"),
            (#"{"zones":[{"zoneID":{"zoneName":"_A"}}]}"#, "zones[0].zoneID.zoneName: '_A' begins with an underscore"),
            (#"{"zones":[],"syncToken":7}"#, "syncToken: expected a string, found a number"),
            (#"{"zones":[{"zoneID":{},"reverse":1}]}"#, "zones[0].reverse: expected true or false, found a number"),
            (
                #"{"zones":[{"zoneID":{},"desiredRecordTypes":["a b"]}]}"#,
                "zones[0].desiredRecordTypes[0]: 'a b' is no name"
            ),
            (
                #"{"zones":[{"zoneID":{},"desiredKeys":{}}]}"#,
                "zones[0].desiredKeys: expected an array, found an object"
            ),
        ])
    func faults(body: String, expected: String) {
        #expect(reason { try zones(body) }?.hasPrefix(expected) == true)
    }

    @Test("200 zones are taken in a request, 201 are not")
    func zonesMax() throws {
        func body(_ count: Int) -> String {
            "{\"zones\":[\(Array(repeating: #"{"zoneID":{}}"#, count: count).joined(separator: ","))]}"
        }
        #expect(try zones(body(199)).count == 199 && zones(body(200)).count == 200)
        #expect(reason { try zones(body(201)) }?.hasPrefix("zones: 201 given, at most 200") == true)
    }

    @Test("the older form for one zone")
    func recordChanges() throws {
        let body = #"""
            {"zoneID":{"zoneName":"A"},"syncToken":"QQ==","desiredKeys":["k"],"desiredRecordTypes":[],"reverse":true,
            "numbersAsStrings":true}
            """#
        let request = try RecordChangesRequest(body: Array(body.utf8))
        #expect(request.zoneID.name == "A" && request.syncToken == "QQ==" && request.resultsLimit == 200)
        #expect(request.desiredKeys == ["k"] && request.desiredRecordTypes == [] && request.isReverse)
        #expect(request.numbersAsStrings)
        #expect(reason { try RecordChangesRequest(body: Array("{}".utf8)) } == "zoneID: is missing")
    }

    @Test("database changes come with a body, an empty one, or none")
    func database() throws {
        for body in ["", "{}", #"{"syncToken":""}"#, #"{"syncToken":null}"#] {
            #expect(try DatabaseChangesForm(body: Array(body.utf8)).syncToken == nil)
            #expect(try ZonesChangesForm(body: Array(body.utf8)).syncToken == nil)
        }
        #expect(try DatabaseChangesForm(body: Array(#"{"syncToken":"QQ=="}"#.utf8)).syncToken == "QQ==")
        for key in ["metaSyncToken", "syncToken"] {
            #expect(try ZonesChangesForm(body: Array("{\"\(key)\":\"QQ==\"}".utf8)).syncToken == "QQ==")
        }
        let both = #"{"metaSyncToken":"QQ==","syncToken":"Qg=="}"#
        #expect(try ZonesChangesForm(body: Array(both.utf8)).syncToken == "QQ==")
        #expect(reason { try ModifyRecordsRequest(body: []) }?.hasPrefix("the body is not JSON") == true)
    }

    @Test("users are named by address, number or record name")
    func users() throws {
        let body = #"""
            {"lookupInfos":[{"emailAddress":"ä@b.c"},{"phoneNumber":"+1"},{"userRecordName":"_u","emailAddress":null,"x":1}]}
            """#
        let infos = try UsersDiscoverRequest(body: Array(body.utf8)).lookupInfos
        #expect(
            infos == [
                LookupInfo(emailAddress: "ä@b.c"), LookupInfo(phoneNumber: "+1"), LookupInfo(userRecordName: "_u"),
            ])
        for info in ["{}", #"{"emailAddress":""}"#, #"{"userRecordName":"é"}"#, "7"] {
            let body = "{\"lookupInfos\":[\(info)]}"
            #expect(reason { try UsersDiscoverRequest(body: Array(body.utf8)) }?.hasPrefix("lookupInfos[0]") == true)
        }
        let lookup = try UsersLookupRequest(
            body: Array(#"{"users":[{"emailAddress":"a@b"},{"userRecordName":"_u"}]}"#.utf8))
        #expect(reason { try lookup.emailAddresses() } == "users[1].emailAddress: is missing")
        #expect(reason { try lookup.userRecordNames() } == "users[0].userRecordName: is missing")
        let byName = try UsersLookupRequest(body: Array(#"{"users":[{"userRecordName":"_u"}]}"#.utf8))
        #expect(try byName.userRecordNames() == ["_u"])
        let many = Array(repeating: #"{"emailAddress":"a"}"#, count: 201).joined(separator: ",")
        #expect(
            reason { try UsersLookupRequest(body: Array("{\"users\":[\(many)]}".utf8)) }?.hasPrefix("users: 201")
                == true)
    }

    @Test("parents are read, cleared by null, and have no action")
    func parents() throws {
        func parent(_ text: String) throws -> FieldChange? {
            let operation =
                "{\"operationType\":\"forceUpdate\",\"record\":{\"recordName\":\"r\",\"recordType\":\"T\",\"parent\":\(text)}}"
            return try ModifyRecordsRequest(body: Array("{\"operations\":[\(operation)]}".utf8)).operations[0].fields
                .last
        }
        #expect(try parent("null") == FieldChange(name: "___parent", value: nil))
        let set = try #require(try parent(#"{"recordName":"p","action":"NONE"}"#))
        #expect(try set.value?.resolve(field: set.name, definition: nil) == .reference(Reference(recordName: "p")))
        for (text, path) in [
            ("7", "parent: "), ("{}", "parent.recordName: "), (#"{"recordName":""}"#, "parent.recordName: "),
            (#"{"recordName":"p","action":"VALIDATE"}"#, "parent.action: "),
        ] {
            #expect(reason { try parent(text) }?.hasPrefix("operations[0].record.\(path)") == true)
        }
    }

    @Test("names that begin with an underscore are made for users' own records only")
    func underscores() throws {
        func modify(_ kind: String, _ type: String) throws {
            let record = "{\"recordName\":\"_u\",\"recordType\":\"\(type)\",\"recordChangeTag\":\"1.1\"}"
            let body = "{\"operations\":[{\"operationType\":\"\(kind)\",\"record\":\(record)}]}"
            _ = try ModifyRecordsRequest(body: Array(body.utf8))
        }
        for kind in RecordOperation.Kind.allCases {
            try modify(kind.rawValue, "Users")
            let isRefused = (try? modify(kind.rawValue, "T")) == nil
            #expect(isRefused == kind.mayCreate, "\(kind)")
        }
    }
}
