"""The Image API on one screen."""

from html import escape

from causeway.devcloud.cloud import Cloud
from causeway.devcloud.image import files, images, members, metadefs, schemas
from causeway.devcloud.web import Route, Service, phrase

IMAGE = "/v2/images/{image_id}"

ROUTES = [
    Route("GET", "/", schemas.list_versions, public=True),
    Route("GET", "/versions", schemas.list_versions, public=True),
    Route("GET", "/v2/schemas/{name}", schemas.show_schema),
    Route("GET", "/v2/schemas/metadefs/{name}", metadefs.show_schema),
    Route("GET", "/v2/metadefs/namespaces", metadefs.list_namespaces),
    Route("GET", "/v2/metadefs/namespaces/{namespace}", metadefs.show_namespace),
    Route("GET", "/v2/metadefs/resource_types", metadefs.list_resource_types),
    Route("GET", "/v2/info/import", schemas.show_import),
    Route("GET", "/v2/info/stores", schemas.show_stores),
    Route("GET", "/v2/images", images.list_images),
    Route("POST", "/v2/images", images.create, 201),
    Route("GET", IMAGE, images.show),
    Route("PATCH", IMAGE, images.update),
    Route("DELETE", IMAGE, images.delete, 204),
    Route("POST", IMAGE + "/actions/deactivate", images.deactivate, 204),
    Route("POST", IMAGE + "/actions/reactivate", images.reactivate, 204),
    Route("PUT", IMAGE + "/file", files.upload, 204, in_transaction=False),
    Route("GET", IMAGE + "/file", files.download, in_transaction=False),
    Route("GET", IMAGE + "/locations", files.list_locations),
    Route("POST", IMAGE + "/locations", files.add_location, 202),
    Route("PUT", IMAGE + "/tags/{tag}", images.add_tag, 204),
    Route("DELETE", IMAGE + "/tags/{tag}", images.delete_tag, 204),
    Route("GET", IMAGE + "/members", members.list_members),
    Route("POST", IMAGE + "/members", members.create),
    Route("GET", IMAGE + "/members/{member_id}", members.show),
    Route("PUT", IMAGE + "/members/{member_id}", members.update),
    Route("DELETE", IMAGE + "/members/{member_id}", members.delete, 204),
]


def error_body(status: int, message: str, _kind: str) -> tuple[str, bytes]:
    title = f"{status} {phrase(status)}"
    page = f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n  {escape(message)}"
    return "text/html; charset=UTF-8", f"{page}<br /><br />\n </body>\n</html>".encode()


def make_service(cloud: Cloud) -> Service:
    return Service(cloud, "image", ROUTES, error_body)
