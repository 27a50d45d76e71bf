"""Images and disks from outside: tenants, hosts and block storage say what they are, and nobody is believed.

======================================================================================  ========================
promise                                                                                 test
======================================================================================  ========================
What is said of an image and what is in it agree, are allowed, and name no other file   `test_contents`
No image gets its name in a host's cache before that; none is a disk too large          `test_base_images`
The same for every disk that another host sends, live migrations included               `test_received_disks`
No program guesses a format, and all have limits                                        `test_named_formats`
The files of volumes are opened as block storage says, not as guests make them look     `test_volume_files`
The API refuses what the image service's record says                                    `test_records`
The same in a whole cloud; the user reads why                                           `clouds`
Real guests and real programs: nothing of a host's file arrives anywhere                `hosts`
The small image and volume services for development do the same                         `test_devcloud_volumes`
======================================================================================  ========================

`contents` makes the files.
"""
