import OpenAPIFile

/// The OpenAPI 3.1 document of the HTTP API: every path, request, answer and error that this version has.
///
/// It is the file `Sources/WebServices/OpenAPI/openapi.json`, which is part of the binary. The conformance tests hold
/// every answer of the server against it, and `OpenAPIRoutesTests` its paths against the tables of routes.
package enum OpenAPIDocument {
    /// The file's bytes.
    package static let json = Array(
        UnsafeBufferPointer(start: openapi_document(), count: openapi_document_size()))
}
