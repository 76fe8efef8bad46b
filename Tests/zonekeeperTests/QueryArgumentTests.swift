import ArgumentParser
import RecordModel
import Testing

@testable import zonekeeper

@Suite("Queries on the command line")
struct QueryArgumentTests {
    private func json(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8)) }

    private func query(_ arguments: String...) throws -> JSONValue {
        try RecordQueryCommand.parse(["--type", "Place"] + arguments).query()
    }

    @Test(
        "A distance is in metres, or has a unit",
        arguments: [
            ("at NEAR 42.5,-1.25,100km", 100_000), ("at near 42.5, -1.25, 250 m", 250), ("at NEAR 42.5,-1.25,1.5", 1.5),
        ])
    func near(text: String, metres: Double) throws {
        let filter = try FilterArgument(parsing: text).json
        #expect(
            filter
                == (try json(
                    #"{"fieldName":"at","comparator":"NEAR","fieldValue":{"value":{"latitude":42.5,"longitude":-1.25},"#
                        + #""type":"LOCATION"},"distance":\#(metres)}"#)))
    }

    @Test("Words may be looked for in every field")
    func everyField() throws {
        let filter = try FilterArgument(parsing: "* CONTAINS_ANY_TOKENS island  north").json
        #expect(filter["fieldName"] == nil && filter["systemFieldName"] == nil)
        #expect(filter["comparator"] == .string("CONTAINS_ANY_TOKENS"))
        #expect(filter["fieldValue"] == (try json(#"{"value":"island  north"}"#)))
    }

    @Test("A query without filters and sort keys is its record type")
    func plain() throws {
        #expect(try query() == json(#"{"recordType":"Place"}"#))
    }

    @Test("--near with a distance is a filter, and the place that `distance` sorts by")
    func nearAndSort() throws {
        let place = #"{"latitude":48.85,"longitude":-2.35}"#
        let filter =
            #"{"fieldName":"at","comparator":"NEAR","fieldValue":{"value":\#(place),"type":"LOCATION"},"distance":5000.0}"#
        let sort = #"{"fieldName":"at","ascending":false,"relativeLocation":{"value":\#(place),"type":"LOCATION"}}"#
        #expect(
            try query("--near", "at=48.85,-2.35,5km", "--filter", "code = FR", "--sort", "-distance", "--sort", "code")
                == json(
                    #"{"recordType":"Place","filterBy":["#
                        + #"{"fieldName":"code","comparator":"EQUALS","fieldValue":{"value":"FR"}},\#(filter)],"#
                        + #""sortBy":[\#(sort),{"fieldName":"code","ascending":true}]}"#))
        #expect(
            try query("--near", "at=48.85,-2.35,5km") == json(#"{"recordType":"Place","filterBy":[\#(filter)]}"#))
        // Without a distance nothing is left out; and without --near `distance` is a field like any other.
        #expect(
            try query("--near", "at=48.85,-2.35", "--sort", "-distance")
                == json(#"{"recordType":"Place","sortBy":[\#(sort)]}"#))
        #expect(
            try query("--sort", "distance")
                == json(#"{"recordType":"Place","sortBy":[{"fieldName":"distance","ascending":true}]}"#))
    }

    @Test(
        "Options that do not go together are refused",
        arguments: [
            ["--near", "at=1,2"], ["--near", "at=1,2,1e308km"], ["--near", "at"], ["--near", "=1,2,3"],
            ["--near", "at=1,2,3", "--limit", "0"],
            ["--zone-wide"], ["--zone-wide", "--database", "private", "--explain"],
            ["--zone-wide", "--database", "private", "--zone", "Notes"], ["--filter", "x"],
        ])
    func refused(arguments: [String]) {
        #expect(throws: (any Error).self) { try RecordQueryCommand.parse(["--type", "Place"] + arguments) }
    }

    @Test("A search of all zones names none")
    func zoneWide() throws {
        let command = try RecordQueryCommand.parse(["--type", "Place", "--zone-wide", "--database", "private"])
        #expect(command.zoneWide)
        let table = RecordTable.table([
            try json(#"{"recordName":"r","zoneID":{"zoneName":"Notes"},"fields":{"a":{"value":"x","type":"STRING"}}}"#)
        ])
        #expect(table == "ZONE   RECORD NAME  a\nNotes  r            x")
    }

    @Test("An explanation is printed as it is nested")
    func explanation() throws {
        let text = ExplanationText.lines(
            try json(
                #"{"driver":"code","examined":12,"tested":["a","b"],"indexes":[{"name":"code","ready":true}],"none":[]}"#
            ))
        #expect(
            text == [
                "driver    code", "examined  12", "tested", "  - a", "  - b", "indexes", "  - name   code",
                "    ready  true", "none      []",
            ])
    }
}
